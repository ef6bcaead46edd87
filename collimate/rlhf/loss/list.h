#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "collimate/rlhf/types/algorithm.h"
#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {

// A loss is made of this, beside its name.
struct LossSetting {
  AlgorithmOptions options = AlgorithmOptions();
  int64_t completion_tokens = 0;  // longest completion: divisor of dr_grpo
  double updates = 1;             // in which an epoch trains the rows of an iteration
};

// The options of AlgorithmOptions that losses read: the same of each type, or what a function of the type says.
struct LossOptions : std::function<std::vector<std::string>(const std::string& type)> {
  using function::function;
  LossOptions(std::initializer_list<const char*> of_each = {})
      : function([all = std::vector<std::string>(of_each.begin(), of_each.end())](const std::string&) { return all; }) {
  }
};

// The losses of one file of this folder. `rows` says what they read, which is what a recipe asks for: "completions",
// "pairs" (chosen, rejected), "scored pairs" (by a score head), "marked" (desirable or not), "taught completions"
// (with a teacher's distributions), "rollouts", "values".
struct LossEntry {
  std::string rows;
  std::vector<std::string> types;  // names, as algorithm.loss_type has them
  LossOptions options;
  std::function<Loss(const std::string& type, const LossSetting& setting)> make;
  std::map<std::string, std::string> about = {};  // by type: a sentence for `collimate help losses`
};

// All losses. From this list follow what a config may name, its help, the trainers' losses and the golden replays.
const std::vector<LossEntry>& losses();

// Puts losses of a program's own at the end of that list. Call it before configs are read and runs start, in every
// process that works for the run; not thread-safe. InputError when a name is taken, or when no loss of the list reads
// such rows.
void register_losses(LossEntry entry);

// Names in the list's order, of all losses or of those that read `rows`.
std::vector<std::string> loss_types(const std::string& rows = "");
// Options that these losses on `rows` read, with those that name them.
std::vector<std::string> loss_options(const std::string& rows, const std::vector<std::string>& types);
// setting.options.loss_type, or the fallback alone.
std::vector<std::string> chosen_types(const AlgorithmOptions& options, const std::string& fallback);

// The loss that setting.options.loss_type names, `fallback` where it names none, their weighted sum where it names
// several. InputError when one of them does not read `rows`, or when weights or other options do not fit.
Loss make_loss(const std::string& rows, const std::string& fallback, const LossSetting& setting);

// Σ weight · loss over losses that read the same rows and tokens; needs and columns are those of all of them.
Loss weighted_sum(std::vector<Loss> losses, std::vector<double> weights);

}  // namespace collimate::rlhf
