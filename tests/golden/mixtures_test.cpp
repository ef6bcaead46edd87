// Mixtures of experts against Hugging Face transformers (make_mixtures.py): tokens, log-probs, the losses of their
// routers and all gradients.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "collimate/batch/standard_keys.h"
#include "collimate/train/learner.h"
#include "tests/golden/family_weights.h"
#include "tests/support/model/pack_sequences.h"

namespace collimate::golden {
namespace {

using nlohmann::json;

json golden() { return json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/mixtures.json")); }

int32_t most_likely(const at::Tensor& logits) {
  const float* last = logits.const_data_ptr<float>() + logits.numel() - logits.size(-1);
  return static_cast<int32_t>(std::max_element(last, last + logits.size(-1)) - last);
}

TEST(Mixtures, GreedyTokensAreThoseOfTransformers) {
  for (const json& one : golden().at("cases")) {
    model::Model model(family_weights(one.at("config")), {});
    model::KvCache cache(model.shape(), tensor::KvType::kFloat32, 4);
    const std::vector<int32_t> table = {2, 0, 3};
    const auto ids = one.at("ids").get<std::vector<int32_t>>();
    std::span<const int32_t> prompt = std::span(ids).first(10);
    model::TokenBatch step = model::pack_sequences({&prompt, 1});
    std::vector<int32_t> drawn;
    while (drawn.size() < 12) {
      drawn.push_back(most_likely(model.logits(model.forward_cached(step, cache, {&table, 1}))));
      step = {{drawn.back()}, {static_cast<int32_t>(9 + drawn.size())}, {0, 1}};
    }
    EXPECT_EQ(drawn, one.at("greedy").get<std::vector<int32_t>>()) << one.at("name");
  }
}

// One row whose tokens but the first are trained.
Batch row_of(const std::vector<int32_t>& ids) {
  std::vector<uint8_t> trainable(ids.size(), 1);
  trainable[0] = 0;
  Batch rows;
  rows.set(batch::kUid, std::vector<int64_t>{0});
  rows.set_ragged(batch::kIds, std::vector<std::vector<int32_t>>{ids});
  rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>{trainable});
  return rows;
}

// The mean negative log-prob, which keeps the log-probs that it read.
train::Objective nll(std::vector<float>& log_probs) {
  return {{},
          [&log_probs](const Batch&, const batch::Quantities& quantities, const batch::GlobalCounts& counts,
                       const batch::Surveys&) {
            const float* first = quantities.log_probs.const_data_ptr<float>();
            log_probs.assign(first, first + quantities.log_probs.numel());
            return -quantities.log_probs.sum() / counts.tokens;
          }};
}

void expect_gradients(model::Weights& weights, const json& wanted, const std::string& name) {
  size_t compared = 0;
  for (size_t p = 0; p < weights.params().size(); ++p) {
    const shape::ParamSpec& spec = weights.params()[p];
    const tensor::HostRead gradient = weights.gradient_of(static_cast<int>(p));
    double squares = 0, product = 0;
    for_each_value(spec, [&](int64_t here, int64_t in_file) {
      squares += static_cast<double>(gradient[here]) * gradient[here];
      product += gradient[here] * wave("probe " + spec.name, in_file);
    });
    if (!wanted.contains(spec.name)) {
      EXPECT_EQ(squares, 0) << "only the bias of a choice has no gradient: " << spec.name;
      continue;
    }
    const double norm = wanted.at(spec.name)[0];
    EXPECT_NEAR(std::sqrt(squares), norm, 1e-4 * norm + 1e-7) << name << " " << spec.name;
    EXPECT_NEAR(product, wanted.at(spec.name)[1].get<double>(), 3e-4 * norm + 1e-7) << name << " " << spec.name;
    ++compared;
  }
  EXPECT_EQ(compared, wanted.size()) << name;
}

TEST(Mixtures, LossesAndGradientsAreThoseOfTransformers) {
  const json all = golden();
  for (const json& one : all.at("cases")) {
    const std::string name = one.at("name");
    for (const model::Recompute recompute : {model::Recompute::kNone, model::Recompute::kFull}) {
      auto weights = family_weights(one.at("config"), {.trained = true});
      model::Model model(weights, {});
      train::LearnerOptions options{.recompute = recompute};
      if (one.contains("aux_loss")) options.routers = {all.at("balance"), all.at("z")};
      train::Learner learner(model, options, {});
      const Batch row = row_of(one.at("ids"));
      std::vector<float> log_probs;
      const train::UpdateReport report = learner.accumulate(row, nll(log_probs), train::count_rows(row));
      const auto wanted = one.at("log_probs").get<std::vector<double>>();
      ASSERT_EQ(log_probs.size(), wanted.size());
      for (size_t t = 0; t < wanted.size(); ++t) EXPECT_NEAR(log_probs[t], wanted[t], 2e-5) << name << " token " << t;
      double loss = one.at("nll");
      if (one.contains("aux_loss")) {
        EXPECT_NEAR(report.routers.balance, one.at("aux_loss").get<double>(), 1e-5) << name;
        EXPECT_NEAR(report.routers.z, one.at("z_loss").get<double>(), 1e-4) << name;
        loss += all.at("balance").get<double>() * one.at("aux_loss").get<double>() +
                all.at("z").get<double>() * one.at("z_loss").get<double>();
      }
      EXPECT_NEAR(report.loss, loss, 1e-5) << name;
      expect_gradients(*weights, one.at("gradients"), name);
    }
  }
}

}  // namespace
}  // namespace collimate::golden
