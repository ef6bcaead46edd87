#pragma once

#include <string>
#include <vector>

namespace collimate::cli {

// One word so that a shell, and shell_words, read it back: bare where nothing in it is special, else in '…', or in $'…'
// where it has line breaks.
std::string shell_word(const std::string& word);

// The words of one line; '…', "…", $'…' and \… quote as in a shell. InputError, naming `where`, for an open quote.
std::vector<std::string> shell_words(const std::string& line, const std::string& where);

}  // namespace collimate::cli
