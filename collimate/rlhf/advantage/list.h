#pragma once

#include <string>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/rlhf/types/algorithm.h"

namespace collimate::rlhf {

// An entry is one way to make a column `advantages` [L] from rewards; it is 0 where nothing is trained. `rows` is the
// kind of rows that it reads, by which a recipe asks for it: "groups" are rewards of a prompt's samples, "values" have
// a value model's estimates too, and the entry then also makes `returns`.
struct AdvantageEntry {
  std::string name;  // its name in algorithm.advantage
  std::string rows = "groups";
  std::vector<std::string> needs = {"uid", "prompt_uid", "trainable", "reward"};  // columns, as graph::Column
  std::vector<std::string> makes = {"advantages"};
  std::vector<std::string> options = {};                                       // the AlgorithmOptions that it reads
  Batch (*add)(const Batch& rows, const AlgorithmOptions& options) = nullptr;  // may leave out rows
  double kl_coefficient = 0;                                                   // default when the config sets none
  bool charges_kl = false;       // `add` itself subtracts the KL against the reference from the rewards, by token
  bool compares_samples = true;  // with "groups": needs several samples of a prompt
  bool greedy_baseline = false;  // the last sample of each prompt is greedy and marked by kBaselineSample
  bool reads_parts = false;      // reads each reward by itself or none, not their sum, so that shaping does nothing
  std::string about = {};        // a sentence for `collimate help advantages`
};

// Returns all advantages. The names that a config may use and the kinds of modules follow from this list.
const std::vector<AdvantageEntry>& advantages();

// Appends a program's own advantage to that list. Call it before configs are read and runs start, in every process that
// works for the run. It is not thread-safe. Throws InputError when the name is taken, or when no advantage of the list
// reads rows of this kind.
void register_advantage(AdvantageEntry entry);

// Returns the names in the list's order, of all advantages or of those that read `rows`.
std::vector<std::string> advantage_names(const std::string& rows = "");

// Returns the advantage that algorithm.advantage names, else the one called `fallback`. Throws InputError when none of
// that name reads `rows`.
const AdvantageEntry& find_advantage(const std::string& rows, const std::string& fallback,
                                     const AlgorithmOptions& options);

}  // namespace collimate::rlhf
