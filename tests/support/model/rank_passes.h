#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/read_file.h"
#include "collimate/model/model.h"
#include "collimate/model/peft.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/model/tiny_weights.h"

// Ranks that share a model, each a thread, for comparisons with one rank.
namespace collimate::model::testing {

inline std::string next_ranks() {
  static int runs = 0;
  return "on_ranks " + std::to_string(runs++);
}

// body(the options of a rank's weights) on each; `axis`: how they share, as &ModelRanks::stages.
template <typename Ranks>
void on_ranks(int ranks, Ranks ModelRanks::*axis, const WeightsOptions& whole,
              const std::function<void(const WeightsOptions&)>& body) {
  comm::with_ranks(ranks, next_ranks(), [&](comm::Group& group) {
    WeightsOptions mine = whole;
    mine.ranks.*axis = {{&group, comm::kDeadlineOfRanks}, {group.rank(), ranks}};
    body(mine);
  });
}

// A fixed number for each place, of either sign.
inline at::Tensor slopes_like(const at::Tensor& values) {
  at::Tensor out = at::empty(values.sizes(), at::kFloat);
  for (int64_t i = 0; i < out.numel(); ++i) out.data_ptr<float>()[i] = std::sin(static_cast<float>(i) * 0.9F);
  return on_device(out);
}

// Gives the log-probs of a batch, and takes the slopes above back through the model: {its last state's gradient, them}.
inline std::pair<at::Tensor, std::vector<float>> learn_from(Model& model, const at::Tensor& hidden) {
  LogProbRequest request{.hidden = hidden, .temperature = 0.7F, .entropy = true};
  for (int32_t i = 0; i < hidden.size(0); ++i) request.targets.push_back(i % 37);
  if (request.targets.empty()) return {hidden, {}};
  const LogProbResult result = model.log_probs(request);
  const at::Tensor slopes = slopes_like(result.log_probs);
  return {model.log_probs_backward(request, {slopes, slopes}), to_vector(result.log_probs)};
}

// One training pass of this rank, with transfers to its neighbours where it is a stage, through one run after the
// other; gives the log-probs, which the last stage has. `moves`: gradients are sent.
inline std::vector<float> train_once(Model& model, const TokenBatch& tokens, Recompute recompute, bool moves = true) {
  const StageRanks& stages = model.weights().stages();
  const int runs = stages.place.runs;
  std::vector<std::unique_ptr<ForwardRecord>> records(static_cast<size_t>(runs));
  at::Tensor given, gradient;
  std::vector<float> log_probs;
  for (int run = 0; run < runs; ++run) {
    at::Tensor stream;
    if (run > 0 || !stages.place.is_first()) {
      stream = tensor::empty_result({}, {std::ssize(tokens.ids), model.stream_width()});
      stages.receive({}, stream.data_ptr<float>(), stream.numel(), -1);
    }
    given = model.forward_train(tokens, recompute, base::at(records, run), stream, run);
    if (!model.ends(run)) stages.send({}, given.data_ptr<float>(), given.numel(), 1);
  }
  for (int run = runs - 1; run >= 0; --run) {
    if (model.ends(run)) {
      std::tie(gradient, log_probs) = learn_from(model, given);
    } else {
      EXPECT_EQ(model.takes_gradient(run), moves);
      if (moves) {
        gradient = tensor::empty_result({}, given.sizes());
        stages.receive({}, gradient.data_ptr<float>(), gradient.numel(), 1);
      }
    }
    const at::Tensor passed = model.backward(std::move(base::at(records, run)), gradient);
    EXPECT_EQ(passed.defined(), model.gives_gradient(run));
    if (model.gives_gradient(run)) stages.send({}, passed.data_ptr<float>(), passed.numel(), -1);
  }
  return log_probs;
}

// Calls what it is given with the options of a rank's weights, on each rank.
using OnRanks = std::function<void(const std::function<void(const WeightsOptions&)>&)>;

// These ranks write the files of a model that one rank does, and read that one's.
inline void expect_files_of_one_rank(const std::string& family, const std::string& directory, const OnRanks& ranks) {
  const std::string whole = directory + "/whole", parts = directory + "/ranks";
  const auto one = tiny_weights(tiny_shape(family));
  save_huggingface(*one, whole);
  ranks([&](const WeightsOptions& mine) {
    const auto weights = load_huggingface(whole, "", mine, {});
    EXPECT_EQ(weights->checksum(), one->checksum());
    save_huggingface(*weights, parts);
  });
  for (const char* file : {"/model.safetensors", "/config.json"})
    EXPECT_EQ(base::read_file(parts + file), base::read_file(whole + file)) << family << file;
}
template <typename Ranks>
void expect_files_of_one_rank(const std::string& family, const std::string& directory, Ranks ModelRanks::*axis,
                              int ranks) {
  expect_files_of_one_rank(family, fmt::format("{}/{}-{}", directory, family, ranks),
                           [&](const auto& body) { on_ranks(ranks, axis, {.trained = true}, body); });
}

// Two ranks write the adapters that one rank does, and read what it has written.
template <typename Ranks>
void expect_adapter_files_of_one_rank(const std::string& directory, Ranks ModelRanks::*axis) {
  WeightsOptions options{.trained = true, .lora = {.rank = 3, .alpha = 2}};
  const shape::ModelShape shape = tiny_shape("gpt_neox");
  save_huggingface(*tiny_weights(shape), directory + "/base");
  save_peft(*tiny_weights(shape, options), directory + "/whole", directory + "/base");
  on_ranks(2, axis, options, [&](const WeightsOptions& mine) {
    save_peft(*tiny_weights(shape, mine), directory + "/ranks", directory + "/base");
    const auto again = load_huggingface(directory + "/whole", "", mine, {});
    EXPECT_EQ(again->checksum(), tiny_weights(shape, mine)->checksum());
  });
  for (const char* file : {"/adapter_model.safetensors", "/adapter_config.json"})
    EXPECT_EQ(base::read_file(directory + "/ranks" + file), base::read_file(directory + "/whole" + file)) << file;
}

}  // namespace collimate::model::testing
