#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collimate/base/section.h"

namespace collimate::recipe {

// Maps a key of another program's configuration (TRL, verl, LLaMA-Factory, OpenRLHF), or a usual word, to ours.
struct OtherName {
  std::string_view name;       // the last part or parts of its path: "kl_ctrl.kl_coef"; "vllm_*" for all that begin so
  std::string_view program;    // whose it is, as "TRL, verl"; "" for a usual word
  std::string_view key;        // ours, or an option of the command line; "" where there is none
  std::string_view note = "";  // how they differ
};

std::span<const OtherName> other_names();
// Returns words of no program in particular that people write for our keys, and earlier keys of ours.
std::span<const OtherName> common_words();
// Returns the keys of other programs as a Markdown table, and after them ChatLearn's, whose whole files are translated
// (chatlearn/chatlearn.h).
std::string other_names_table();
// Returns the key to use in the place of another program's; nothing where no known program has such a key. `path`: the
// key with or without its sections, "actor_rollout_ref.rollout.n". Where several rows fit, the one with the longest
// name is taken.
base::KeyRemedy remedy_for_name(const std::string& path);

// Returns what to write for a recipe by its name in another program, or by that of its loss or advantage: "recipe: dpo
// with algorithm: {loss_type: orpo}"; "" for a name that is none of these.
std::string remedy_for_recipe(const std::string& name);

}  // namespace collimate::recipe
