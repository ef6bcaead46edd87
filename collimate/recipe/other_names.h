#pragma once

#include <span>
#include <string>

namespace collimate::recipe {

// A key of another program's configuration (TRL, verl, LLaMA-Factory, OpenRLHF), or an earlier one of ours.
struct OtherName {
  const char* name;
  const char* key;        // ours, or an option of the command line
  const char* note = "";  // how they differ
};

std::span<const OtherName> other_names();
// The key in its place, for an error: "" where nobody is known to call anything so.
std::string remedy_for_name(const std::string& name);

}  // namespace collimate::recipe
