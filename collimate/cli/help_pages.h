#pragma once

#include <string>
#include <vector>

namespace collimate::cli {

// Pages of help with an example each: the recipes, data, lora and resume.
std::vector<std::string> help_pages();
// "" for no such page.
std::string help_page(const std::string& name);

}  // namespace collimate::cli
