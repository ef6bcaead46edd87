// DoRA's adapters against NumPy in float64 (make_dora.py): logits, gradients, and the files that they are written to.
#include <gtest/gtest.h>

#include <cmath>

#include "collimate/model/peft.h"
#include "collimate/model/peft_adapters.h"
#include "tests/golden/quantized.h"

namespace collimate::golden {
namespace {

model::WeightsOptions dora_options(const json& lora) {
  return {.trained = true,
          .lora = {.rank = lora.at("rank"),
                   .alpha = lora.at("alpha"),
                   .rslora = lora.value("rslora", false),
                   .targets = lora.at("targets").get<std::vector<std::string>>(),
                   .dora = true}};
}

// A case's model with its adapters: half of what the formula says, lengths 1 and half of it.
std::shared_ptr<model::Weights> decomposed(const json& one) {
  auto weights = family_weights(one.at("config"), dora_options(one.at("lora")));
  for (size_t i = weights->own_params(); i < weights->params().size(); ++i) {
    const bool are_lengths = weights->params()[i].name.ends_with(model::kAdapterLengths);
    for (float& value : model::testing::edit_of(*weights, static_cast<int>(i)))
      value = static_cast<float>((are_lengths ? 1 : 0) + value / 2);
  }
  weights->commit();
  return weights;
}

class Dora : public model::testing::InDirectory {
 protected:
  json cases_ = golden_of("dora.json");
};

TEST_F(Dora, LogitsAreThoseOfNumPy) {
  for (const json& one : cases_)
    EXPECT_LT(worst_difference(logits_of_ids(decomposed(one), one.at("ids")), one.at("logits")), 3e-5F)
        << one.at("name");
}

// The loss is the sum over t of sin(0.7 t) log p of token 11 t + 3.
TEST_F(Dora, GradientsAreThoseOfNumPy) {
  for (const json& one : cases_)
    for (const model::Recompute recompute :
         {model::Recompute::kNone, model::Recompute::kSelective, model::Recompute::kFull}) {
      const auto weights = decomposed(one);
      model::Model decoder(weights, {});
      const auto ids = one.at("ids").get<std::vector<int32_t>>();
      const std::span<const int32_t> sequence = ids;
      std::vector<int32_t> targets;
      at::Tensor factors = at::empty({std::ssize(ids)}, at::kFloat);
      for (int32_t t = 0; t < static_cast<int32_t>(ids.size()); ++t) {
        targets.push_back((11 * t + 3) % 23);
        factors.data_ptr<float>()[t] = static_cast<float>(std::sin(0.7 * t));
      }
      std::unique_ptr<model::ForwardRecord> record;
      const at::Tensor hidden = decoder.forward_train(model::pack_sequences({&sequence, 1}), recompute, record);
      decoder.backward(std::move(record),
                       decoder.log_probs_backward({hidden, targets}, {model::testing::on_device(factors)}));
      EXPECT_EQ(weights->params().size() - weights->own_params(), one.at("gradients").size());
      for (const auto& [name, gradient] : one.at("gradients").items()) {
        const auto wanted = gradient.get<std::vector<double>>();
        const auto got = weights->gradient_of(weights->index_of(name));
        ASSERT_EQ(std::ssize(got.span()), std::ssize(wanted)) << name;
        double apart = 0, norm = 0;
        for (size_t i = 0; i < wanted.size(); ++i) {
          apart += std::pow(got[i] - wanted[i], 2);
          norm += std::pow(wanted[i], 2);
        }
        EXPECT_GT(norm, 0) << name;
        EXPECT_LT(std::sqrt(apart), 1e-4 * std::sqrt(norm)) << one.at("name") << " " << name;
      }
    }
}

// Logits are those from PEFT's files too, merged and trained on, and from the merged model.
TEST_F(Dora, FilesHoldTheSameModel) {
  for (const json& one : cases_) {
    const auto weights = decomposed(one);
    const std::string base = directory_ + "/base", adapter = directory_ + "/adapter", merged = directory_ + "/merged";
    model::save_huggingface(*family_weights(one.at("config")), base);
    model::save_peft(*weights, adapter, base);
    model::save_huggingface(*weights, merged);
    const auto expect_golden = [&](const std::string& directory, const model::WeightsOptions& options) {
      const auto loaded = model::load_huggingface(directory, "lm", options, {});
      EXPECT_LT(worst_difference(logits_of_ids(loaded, one.at("ids")), one.at("logits")), 5e-5F)
          << one.at("name") << " in " << directory;
    };
    expect_golden(merged, {});
    for (const bool mapped : {false, true}) expect_golden(adapter, {.mapped = mapped});
    const model::WeightsOptions on{.trained = true, .lora = model::PeftAdapters(adapter).options()};
    EXPECT_TRUE(on.lora.dora);
    expect_golden(adapter, on);
    EXPECT_EQ(model::load_huggingface(adapter, "lm", on, {})->checksum(), weights->checksum()) << one.at("name");
  }
}

}  // namespace
}  // namespace collimate::golden
