#pragma once

#include <string>

namespace collimate::cli {

// Writes a word on one line such that a shell reads it back: bare if no character is special, in $'…' if it has line
// breaks, else in '…'.
std::string shell_word(const std::string& word);

}  // namespace collimate::cli
