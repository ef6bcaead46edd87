#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collimate/base/section.h"

namespace collimate::recipe {

// A key of another program's configuration (TRL, verl, LLaMA-Factory, OpenRLHF), or an earlier one of ours.
struct OtherName {
  std::string_view name;     // the last of a path, or its last parts: "kl_ctrl.kl_coef"; "vllm_*" for all that begin so
  std::string_view program;  // whose it is, as "TRL, verl"; "" for an earlier one of ours
  std::string_view key;      // ours, or an option of the command line; "" where there is none
  std::string_view note = "";  // how they differ
};

std::span<const OtherName> other_names();
// Gives those of other programs as a Markdown table, and ChatLearn's, of which whole files are translated
// (chatlearn/chatlearn.h).
std::string other_names_table();
// The key in its place; nothing where nobody is known to call anything so. `path`: a key with or without its sections,
// "actor_rollout_ref.rollout.n". Of several rows the one with the longest name is taken.
base::KeyRemedy remedy_for_name(const std::string& path);

}  // namespace collimate::recipe
