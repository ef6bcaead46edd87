#pragma once

#include <string>
#include <vector>

namespace collimate::cli {

// Returns the names of the help pages, which have an example each: the recipes, data, lora and resume.
std::vector<std::string> help_pages();
// Returns the text of a page, "" if there is none of that name.
std::string help_page(const std::string& name);

}  // namespace collimate::cli
