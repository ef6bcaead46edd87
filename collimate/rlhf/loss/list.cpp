#include "collimate/rlhf/loss/list.h"

#include <ATen/TensorOperators.h>

#include <algorithm>

#include "collimate/base/error.h"

// Each file of this folder with losses has a line here, which calls the function that returns its entry.
// clang-format off
#define COLLIMATE_LOSSES \
  sft_losses(), \
  distillation_losses(), \
  dpo_losses(), \
  orpo_losses(), \
  cpo_losses(), \
  reward_losses(), \
  divergence_region_losses(), \
  step_losses(), \
  kto_losses(), \
  policy_losses(), \
  geometric_mean_losses(), \
  covariance_losses(), \
  policy_gradient_losses(), \
  online_preference_losses(), \
  value_losses()
// clang-format on

namespace collimate::rlhf {

LossEntry COLLIMATE_LOSSES;  // declares them

namespace {

std::vector<LossEntry>& loss_list() {
  static std::vector<LossEntry> all = {COLLIMATE_LOSSES};
  return all;
}

bool names(const LossEntry& entry, const std::string& type) {
  return std::find(entry.types.begin(), entry.types.end(), type) != entry.types.end();
}

const LossEntry& entry_of(const std::string& rows, const std::string& type) {
  for (const LossEntry& entry : losses())
    if (entry.rows == rows && names(entry, type)) return entry;
  throw base::InputError(base::expectation("algorithm.loss_type",
                                           fmt::format("one of {} for {}", fmt::join(loss_types(rows), ", "), rows),
                                           "\"" + type + "\""));
}

void check_fit(const std::vector<Loss>& parts, const std::vector<double>& weights) {
  if (parts.size() != weights.size())
    throw base::InputError(base::expectation("algorithm.loss_weights",
                                             fmt::format("{} numbers, one for each loss_type", parts.size()),
                                             std::to_string(weights.size())));
  for (const Loss& loss : parts)
    if (loss.reads(kCompletion) != parts[0].reads(kCompletion))
      throw base::InputError(base::expectation("algorithm.loss_type", "losses that read the same tokens",
                                               parts[0].name + " and " + loss.name));
}

// Returns the kinds of rows that losses read, each once.
std::vector<std::string> kinds_of_rows() {
  std::vector<std::string> kinds;
  for (const LossEntry& entry : losses())
    if (std::find(kinds.begin(), kinds.end(), entry.rows) == kinds.end()) kinds.push_back(entry.rows);
  return kinds;
}

}  // namespace

const std::vector<LossEntry>& losses() { return loss_list(); }

void register_losses(LossEntry entry) {
  const std::vector<std::string> kinds = kinds_of_rows(), taken = loss_types();
  if (std::find(kinds.begin(), kinds.end(), entry.rows) == kinds.end())
    throw base::InputError(base::expectation(
        "register_losses", fmt::format("rows of one of the kinds {}", fmt::join(kinds, ", ")), '"' + entry.rows + '"'));
  for (const std::string& type : entry.types)
    if (std::find(taken.begin(), taken.end(), type) != taken.end())
      throw base::InputError(base::expectation("register_losses", "a name that is free", "\"" + type + "\" again"));
  loss_list().push_back(std::move(entry));
}

std::vector<std::string> loss_types(const std::string& rows) {
  std::vector<std::string> types;
  for (const LossEntry& entry : losses())
    if (rows.empty() || entry.rows == rows) types.insert(types.end(), entry.types.begin(), entry.types.end());
  return types;
}

std::vector<std::string> loss_options(const std::string& rows, const std::vector<std::string>& types) {
  std::vector<std::string> options = {"loss_type", "loss_weights"};
  for (const std::string& type : types) {
    const std::vector<std::string> read = entry_of(rows, type).options(type);
    options.insert(options.end(), read.begin(), read.end());
  }
  return options;
}

std::vector<std::string> chosen_types(const AlgorithmOptions& options, const std::string& fallback) {
  return options.loss_type->empty() ? std::vector<std::string>{fallback} : options.loss_type.get();
}

Loss make_loss(const std::string& rows, const std::string& fallback, const LossSetting& setting) {
  const std::vector<std::string> types = chosen_types(setting.options, fallback);
  std::vector<double> weights = setting.options.loss_weights;
  if (weights.empty()) weights.assign(types.size(), 1.0);
  std::vector<Loss> parts;
  for (const std::string& type : types) parts.push_back(entry_of(rows, type).make(type, setting));
  check_fit(parts, weights);
  return parts.size() == 1 && weights[0] == 1.0 ? parts[0] : weighted_sum(std::move(parts), std::move(weights));
}

Loss weighted_sum(std::vector<Loss> parts, std::vector<double> weights) {
  COLLIMATE_CHECK(!parts.empty(), "a sum of no losses");
  check_fit(parts, weights);
  Loss sum = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    const Loss& loss = parts[i];
    sum.name += "+" + loss.name;
    sum.needs.log_probs |= loss.needs.log_probs;
    sum.needs.entropy |= loss.needs.entropy;
    sum.needs.values |= loss.needs.values;
    sum.needs.row_scores |= loss.needs.row_scores;
    sum.needs.token_scores |= loss.needs.token_scores;
    sum.needs.log_collision |= loss.needs.log_collision;
    sum.needs.listed |= loss.needs.listed;  // all at one temperature
    if (loss.needs.listed) sum.needs.listed_temperature = loss.needs.listed_temperature;
    sum.needs.rows_per_unit = std::max(sum.needs.rows_per_unit, loss.needs.rows_per_unit);
    sum.surveys += loss.surveys;
    for (const std::string& column : loss.columns)
      if (std::find(sum.columns.begin(), sum.columns.end(), column) == sum.columns.end()) sum.columns.push_back(column);
  }
  sum.survey = [parts](LossContext& c) {
    std::vector<at::Tensor> all;
    for (const Loss& loss : parts)
      if (loss.surveys > 0)
        for (at::Tensor& one : loss.survey(c)) all.push_back(std::move(one));
    return all;
  };
  sum.value = [parts = std::move(parts), weights = std::move(weights)](LossContext& c) {
    at::Tensor total;
    size_t first = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      c.count_surveys_from(first);
      const at::Tensor part = parts[i].value(c) * weights[i];
      total = total.defined() ? total + part : part;
      first += parts[i].surveys;
    }
    return total;
  };
  return sum;
}

}  // namespace collimate::rlhf
