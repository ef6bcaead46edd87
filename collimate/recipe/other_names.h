#pragma once

#include <span>
#include <string>

namespace collimate::recipe {

// A key of another program's configuration (TRL, verl, LLaMA-Factory, OpenRLHF), or an earlier one of ours.
struct OtherName {
  const char* name;
  const char* program;    // whose it is, as "TRL, verl"; "" for an earlier one of ours
  const char* key;        // ours, or an option of the command line
  const char* note = "";  // how they differ
};

std::span<const OtherName> other_names();
// Gives those of other programs as a Markdown table.
std::string other_names_table();
// The key in its place, for an error: "" where nobody is known to call anything so.
std::string remedy_for_name(const std::string& name);

}  // namespace collimate::recipe
