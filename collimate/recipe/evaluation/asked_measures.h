#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/config_node.h"
#include "collimate/base/words.h"
#include "collimate/recipe/config.h"

namespace collimate::recipe {

enum class MeasureKind {
  kCompletions,  // prompts are completed, rewards judge
  kPerplexity,   // of given completions, or of plain texts
  kPairs,        // whether the chosen answer scores higher, by a reward model or by the mean log-prob of its tokens
  kChoices,      // which choice of a question has the largest log-prob
  kMarked,       // whether desirable answers score higher than undesirable ones
  kSteps         // whether a process reward model says of each step of an answer what its label does
};
constexpr auto words_of(MeasureKind) {
  return base::Words<MeasureKind, 6>{"measure", {"completions", "perplexity", "pairs", "choices", "marked", "steps"}};
}
rlhf::RowKind rows_of(MeasureKind measured);

// Describes an evaluation that a config asks for.
struct AskedMeasure {
  std::string key = "evaluation";       // what errors call it: "evaluation.measure.0"
  std::optional<MeasureKind> measured;  // nothing: what the recipe measures by itself
  std::string name;                     // name that the entry gives the measure; "" for none
  std::string data_key = "data.eval";
  nlohmann::json data;  // as data.eval; null where data.val_size holds rows out
  MeasureOptions options;
};

// Returns the measures in the order of evaluation.measure. Where that is not set, returns the one that the recipe
// measures by itself, or nothing where no rows are held out. Throws InputError, which names the entry's key, for an
// entry without data.
std::vector<AskedMeasure> asked_measures(const Config& config);

// Returns how many tokens a measure's completions have at most: its own number, else that of the recipe's samples, else
// 128.
int64_t completion_tokens(const AskedMeasure& asked, const Config& config);
// Returns the longest row, in tokens, that a config allows to be completed or measured.
int64_t longest_row(const Config& config, const AskedMeasure& asked);

// Checks the list that stands at `path` of a config, or its one entry, and returns it with the options of its rewards
// written out. Throws InputError naming file and line.
nlohmann::json resolved_measures(const base::ConfigNode& list, const std::string& path);

}  // namespace collimate::recipe
