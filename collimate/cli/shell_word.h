#pragma once

#include <string>

namespace collimate::cli {

// One word, on one line, as a shell reads it back: bare where nothing in it is special, else in '…', or in $'…' where
// it has line breaks.
std::string shell_word(const std::string& word);

}  // namespace collimate::cli
