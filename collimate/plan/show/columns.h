#pragma once

#include <string>
#include <vector>

namespace collimate::plan {

// Lines of text have at most so many characters where no terminal says how many it has.
constexpr int kTextColumns = 120;

// Returns the number of characters (UTF-8 code points) of a text.
int width_of(const std::string& text);

// Cuts a text to `columns` characters, the last of which is "…" where something is missing.
std::string cut_to(const std::string& text, int columns);

// Writes the head and behind it the words, on as many lines as they need within `columns`. Later lines begin where the
// first word does; where that leaves little room, all words stand below the head, indented. Ends with a newline.
std::string hanging(const std::string& head, const std::vector<std::string>& words, int columns,
                    const std::string& between = " ");
// This overload takes the words of a text.
std::string hanging(const std::string& head, const std::string& text, int columns);

}  // namespace collimate::plan
