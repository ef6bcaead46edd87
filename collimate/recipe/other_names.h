#pragma once

#include <span>
#include <string>

#include "collimate/base/config_node.h"

namespace collimate::recipe {

// A key of another program's configuration (TRL, verl, LLaMA-Factory, OpenRLHF), or an earlier one of ours.
struct OtherName {
  const char* name;       // the last of a path, or its last parts: "kl_ctrl.kl_coef"
  const char* program;    // whose it is, as "TRL, verl"; "" for an earlier one of ours
  const char* key;        // ours, or an option of the command line; "" where there is none
  const char* note = "";  // how they differ
};

std::span<const OtherName> other_names();
// Gives those of other programs as a Markdown table.
std::string other_names_table();
// The key in its place, for an error: "" where nobody is known to call anything so. `path`: a key with or without its
// sections, "actor_rollout_ref.rollout.n".
std::string remedy_for_name(const std::string& path);
// InputError that names all keys of other programs in a configuration of ours, at whatever depth, each with its remedy.
void refuse_other_names(const base::ConfigNode& root);

}  // namespace collimate::recipe
