#pragma once

#include <string>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/rlhf/types/algorithm.h"

namespace collimate::rlhf {

// One way to make advantages: a column `advantages` [L] from rewards, 0 where nothing is trained. `rows` says what it
// reads, which is what a recipe asks for: "groups" (rewards of a prompt's samples), "values" (and a value model's
// estimates; it makes `returns` too).
struct AdvantageEntry {
  std::string name;  // as algorithm.advantage has it
  std::string rows = "groups";
  std::vector<std::string> needs = {"uid", "prompt_uid", "trainable", "reward"};  // columns, as graph::Column
  std::vector<std::string> makes = {"advantages"};
  std::vector<std::string> options = {};                                       // of AlgorithmOptions, that it reads
  Batch (*add)(const Batch& rows, const AlgorithmOptions& options) = nullptr;  // may leave out rows
  double kl_coefficient = 0;                                                   // where the config sets none
  bool charges_kl = false;       // `add` takes the KL against the reference out of the rewards itself, by token
  bool compares_samples = true;  // of "groups": one sample of a prompt says nothing
  bool greedy_baseline = false;  // the last sample of each prompt is greedy, as kBaselineSample says
  bool reads_parts = false;      // each reward of the list, or none, in place of their sum: shaping that does nothing
  std::string about = {};        // a sentence for `collimate help advantages`
};

// All of them. From this list follow what a config may name and the module kinds.
const std::vector<AdvantageEntry>& advantages();

// Puts an advantage of a program's own at the end of that list. Call it before configs are read and runs start, in
// every process that works for the run; not thread-safe. InputError when the name is taken, or when no advantage of the
// list reads such rows.
void register_advantage(AdvantageEntry entry);

std::vector<std::string> advantage_names(const std::string& rows = "");

// The one that algorithm.advantage names, else `fallback`. InputError when it does not read `rows`.
const AdvantageEntry& find_advantage(const std::string& rows, const std::string& fallback,
                                     const AlgorithmOptions& options);

}  // namespace collimate::rlhf
