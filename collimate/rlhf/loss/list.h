#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "collimate/rlhf/types/algorithm.h"
#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {

// A loss is made from its name and this setting.
struct LossSetting {
  AlgorithmOptions options = AlgorithmOptions();
  int64_t completion_tokens = 0;  // longest completion: divisor of dr_grpo
  double updates = 1;             // number of updates in which one epoch trains the rows of an iteration
};

// Says which members of AlgorithmOptions a loss type reads. A list says so for all types, a function for each.
struct LossOptions : std::function<std::vector<std::string>(const std::string& type)> {
  using function::function;
  LossOptions(std::initializer_list<const char*> of_each = {})
      : function([all = std::vector<std::string>(of_each.begin(), of_each.end())](const std::string&) { return all; }) {
  }
};

// An entry holds the losses of one file of this folder. `rows` is the kind of rows that they read, by which a recipe
// asks for them: "completions", "pairs" (chosen, rejected), "scored pairs" (by a score head), "labelled steps" (right
// or wrong), "marked" (desirable or not), "taught completions" (with a teacher's distributions), "rollouts" or
// "values".
struct LossEntry {
  std::string rows;
  std::vector<std::string> types;  // names, as algorithm.loss_type has them
  LossOptions options;
  std::function<Loss(const std::string& type, const LossSetting& setting)> make;
  std::map<std::string, std::string> about = {};  // by type: a sentence for `collimate help losses`
};

// Returns all losses. The names that a config may use, their help, the trainers' losses and the golden replays follow
// from this list.
const std::vector<LossEntry>& losses();

// Appends a program's own losses to that list. Call it before configs are read and runs start, in every process that
// works for the run. It is not thread-safe. Throws InputError when a name is taken, or when no loss of the list reads
// rows of this kind.
void register_losses(LossEntry entry);

// Returns the names in the list's order, of all losses or of those that read `rows`.
std::vector<std::string> loss_types(const std::string& rows = "");
// Returns the options that these losses on `rows` read, and loss_type and loss_weights.
std::vector<std::string> loss_options(const std::string& rows, const std::vector<std::string>& types);
// Returns the names in options.loss_type, or `fallback` alone when it is empty.
std::vector<std::string> chosen_types(const AlgorithmOptions& options, const std::string& fallback);

// Returns the loss that setting.options.loss_type names, `fallback` if it names none, or the weighted sum if it names
// several. Throws InputError when one of them does not read `rows`, or when weights or other options do not fit.
Loss make_loss(const std::string& rows, const std::string& fallback, const LossSetting& setting);

// Returns Σ weight · loss over losses that read the same rows and tokens. The sum needs all that any of them needs.
Loss weighted_sum(std::vector<Loss> losses, std::vector<double> weights);

}  // namespace collimate::rlhf
