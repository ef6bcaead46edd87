#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace collimate::base {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, or "" when none is within a third of its length (at least 2 edits). The only one
// that goes on behind it ("samples_per_prompt" of "samples") is nearer than what takes more than one edit.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// The nearest of all candidates, however far: one that begins with `word` or that `word` begins with before others;
// case does not matter. "" when there are none.
std::string closest(const std::string& word, const std::vector<std::string>& candidates);

// The InputError of a name that is none of the candidates: it lists them, after `other` where something else is
// accepted too, and suggests the nearest.
[[noreturn]] void throw_unknown_name(const std::string& where, const std::string& name,
                                     const std::vector<std::string>& candidates, const std::string& other = "");
// The InputError of a short list, of which the closest is suggested, however far.
[[noreturn]] void throw_unknown_choice(const std::string& where, const std::string& name,
                                       const std::vector<std::string>& candidates, const std::string& other = "");

}  // namespace collimate::base
