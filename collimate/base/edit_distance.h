#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace collimate::base {

// Returns the least number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b);

// Returns the candidate nearest to `word`, or "" when none is within a third of the word's length (at least 2 edits).
// When exactly one candidate continues the word behind "_" ("samples_per_prompt" for "samples"), that one is preferred
// to candidates more than one edit away; the word must have at least 4 letters for that.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// Returns the nearest of all candidates, however far it is, or "" when there are none. Candidates that begin with
// `word`, or that `word` begins with, come before others; case does not matter.
std::string closest(const std::string& word, const std::vector<std::string>& candidates);

// Throws the InputError for a name that is none of the candidates. The error lists them, after `other` where something
// else is accepted too, and suggests the nearest if one is near enough.
[[noreturn]] void throw_unknown_name(const std::string& where, const std::string& name,
                                     const std::vector<std::string>& candidates, const std::string& other = "");
// Throws the same error for a short list: it suggests the closest candidate, however far that is.
[[noreturn]] void throw_unknown_choice(const std::string& where, const std::string& name,
                                       const std::vector<std::string>& candidates, const std::string& other = "");

}  // namespace collimate::base
