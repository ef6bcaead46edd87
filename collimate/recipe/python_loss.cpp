#include "collimate/recipe/python_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/recipe/python_numbers.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/tensor/results.h"

namespace collimate::recipe {
namespace {

using nlohmann::json;

std::vector<std::byte> on_host(const at::Tensor& values) {
  std::vector<std::byte> here(static_cast<size_t>(values.numel()) * sizeof(float));
  at::from_blob(here.data(), values.sizes(), at::kFloat).copy_(values.detach());
  return here;
}

// Returns the quantities that a loss has asked for, by their names in Python.
std::vector<std::pair<std::string, at::Tensor>> quantities_of(const rlhf::LossContext& c) {
  std::vector<std::pair<std::string, at::Tensor>> all = {
      {"log_probs", c.log_probs()},   {"entropy", c.entropy()},           {"values", c.values()},
      {"row_scores", c.row_scores()}, {"token_scores", c.token_scores()}, {"log_collision", c.log_collision()}};
  std::erase_if(all, [](const auto& quantity) { return !quantity.second.defined(); });
  return all;
}

at::Tensor column_of(const rlhf::LossContext& c, const std::string& name) {
  const bool ragged = c.rows().column(name).schema.ragged;
  const Key<float> key{.name = name, .ragged = ragged};
  return ragged ? c.per_token(key) : c.per_row(key);
}

// Returns a number with the given gradients. Its value is exact, and so is the gradient that each quantity gets.
at::Tensor with_gradients(double value, const std::vector<std::pair<at::Tensor, at::Tensor>>& gradients) {
  at::Tensor total;
  for (const auto& [quantity, gradient] : gradients) {
    const at::Tensor product = (quantity * gradient).sum();
    const at::Tensor nothing = product - product.detach();
    total = total.defined() ? total + nothing : nothing;
  }
  return total.defined() ? total + value : at::scalar_tensor(value, at::kDouble);
}

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

at::Tensor value_in_python(PythonProcess& process, const json& told, const json& options, rlhf::LossContext& c) {
  const auto quantities = quantities_of(c);
  json question = {{"loss", told.at("name")},        {"tokens", c.token_counts()}, {"global_tokens", c.global_tokens()},
                   {"global_rows", c.global_rows()}, {"options", options},         {"quantities", json::array()},
                   {"columns", told.at("columns")}};
  PythonProcess::Buffers buffers;
  for (const auto& [name, values] : quantities) {
    question["quantities"].push_back(name);
    buffers.push_back(on_host(values));
  }
  for (const json& name : told.at("columns")) buffers.push_back(on_host(column_of(c, name)));
  PythonProcess::Answer answer;
  {
    const std::lock_guard turn(process.turn());
    try {
      process.revive();
      answer = process.ask(question, buffers);
    } catch (const base::InputError& error) {
      throw base::RunError(error.what());  // a run has begun: what the function raised is a failure of it
    }
  }
  const json& metrics = answer.header.at("metrics");
  const std::vector<double> numbers = last_numbers(answer.buffers, 1 + 2 * metrics.size());
  COLLIMATE_CHECK(answer.buffers.size() == quantities.size(), "{} gradients of {} quantities", answer.buffers.size(),
                  quantities.size());
  std::vector<std::pair<at::Tensor, at::Tensor>> gradients;
  for (size_t i = 0; i < quantities.size(); ++i) {
    const std::vector<float> gradient = floats_of(answer.buffers[i]);
    const at::Tensor& quantity = quantities[i].second;
    if (quantity.requires_grad())
      gradients.emplace_back(quantity, tensor::tensor_beside(quantity, std::span<const float>(gradient)));
  }
  for (size_t i = 0; i < metrics.size(); ++i)
    c.metric(metrics[i], at::scalar_tensor(numbers[1 + 2 * i], at::kDouble), numbers[2 + 2 * i]);
  return with_gradients(numbers[0], gradients);
}

batch::QuantityNeeds needs_of(const json& told) {
  batch::QuantityNeeds needs{.log_probs = false};
  const std::vector<std::pair<std::string, bool*>> known = {{"log_probs", &needs.log_probs},
                                                            {"entropy", &needs.entropy},
                                                            {"values", &needs.values},
                                                            {"row_scores", &needs.row_scores},
                                                            {"token_scores", &needs.token_scores},
                                                            {"log_collision", &needs.log_collision}};
  std::vector<std::string> names;
  for (const auto& [name, flag] : known) names.push_back(name);
  for (const std::string name : told.at("needs")) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) base::throw_unknown_name("collimate.loss", name, names, "needs of quantities, ");
    *base::at(known, found - names.begin()).second = true;
  }
  needs.rows_per_unit = told.at("rows_per_unit");
  return needs;
}

// Returns the keys of `algorithm` that a loss reads. Throws InputError for a key that is not there.
std::vector<std::string> options_of(const json& told) {
  const std::vector<std::string> known = rlhf::AlgorithmOptions().section_value().keys;
  std::vector<std::string> options = told.at("options");
  for (const std::string& option : options)
    if (std::ranges::find(known, option) == known.end())
      base::throw_unknown_name("collimate.loss", option, known, "options of algorithm, ");
  return options;
}

}  // namespace

void register_python_loss(const std::shared_ptr<PythonProcess>& process, const json& told) {
  const batch::QuantityNeeds needs = needs_of(told);
  const std::vector<std::string> options = options_of(told);
  rlhf::LossEntry entry{.rows = told.at("rows"), .types = {told.at("name").get<std::string>()}};
  entry.options = [options](const std::string&) { return options; };
  entry.make = [process, told, needs](const std::string& type, const rlhf::LossSetting& setting) {
    json read = json::object();
    const json all = base::to_json(setting.options.section_value());
    for (const json& option : told.at("options")) read[option.get<std::string>()] = all.at(option.get<std::string>());
    return rlhf::Loss{
        .name = type,
        .needs = needs,
        .columns = told.at("columns"),
        .value = [process, told, read](rlhf::LossContext& c) { return value_in_python(*process, told, read, c); }};
  };
  rlhf::register_losses(std::move(entry));
}

}  // namespace collimate::recipe
