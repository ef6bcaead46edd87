// Adapters of layers with a rank and an alpha of their own, as PEFT's rank_pattern and alpha_pattern give them. Against
// PEFT's numbers: tests/golden/peft_test.cpp.
#include <ATen/ATen.h>

#include "collimate/model/peft.h"
#include "collimate/model/peft_adapters.h"
#include "tests/support/model/edit_weights.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using testing::tiny_shape;
using testing::tiny_weights;
using testing::to_vector;

constexpr const char* kOwnQuery = "model.layers.0.self_attn.q_proj";
constexpr const char* kOwnDown = "model.layers.1.mlp.down_proj";

// Scales are 1.5, of the query 2.5 and of the down projection 2.
LoraOptions of_own_ranks(bool dora = false) {
  return {.rank = 4, .alpha = 6, .dora = dora, .own = {{kOwnQuery, {2, 5}}, {kOwnDown, {3, 6}}}};
}

class OwnRanks : public testing::InDirectory {};

std::string adapter_of(const std::string& module, std::string_view end) {
  return fmt::format("base_model.model.{}{}", module, end);
}

void train_once(Model& model) {
  const TokenBatch batch = testing::pack(testing::sequences({19, 5, 33}, 37));
  const std::vector<int32_t> targets(batch.ids.size(), 7);
  std::unique_ptr<ForwardRecord> record;
  const at::Tensor hidden = model.forward_train(batch, Recompute::kNone, record);
  model.backward(std::move(record),
                 model.log_probs_backward({hidden, targets}, {testing::on_device(at::ones({hidden.size(0)}))}));
}

// Fills A and B of `padded`, whose layers all have rank 4 and scale 1.5, so that they add the same: B times the
// quotient of the scales, and zeros behind the ranks that `own` lacks.
void pad(const Weights& own, Weights& padded, const std::string& module, float quotient) {
  const auto matrix = [&](const Weights& of, std::string_view end) {
    const int index = of.index_of(adapter_of(module, end));
    return testing::tensor_of(of, index, of.values(index));
  };
  const at::Tensor a = matrix(own, kAdapterA), b = matrix(own, kAdapterB);
  at::Tensor wide_a = at::zeros_like(matrix(padded, kAdapterA)), wide_b = at::zeros_like(matrix(padded, kAdapterB));
  wide_a.slice(0, 0, a.size(0)).copy_(a);
  wide_b.slice(1, 0, b.size(1)).copy_(b * quotient);
  for (const auto& [end, values] : {std::pair(kAdapterA, wide_a), std::pair(kAdapterB, wide_b)}) {
    const float* from = values.const_data_ptr<float>();
    std::copy_n(from, values.numel(), testing::edit_of(padded, padded.index_of(adapter_of(module, end))).begin());
  }
}

TEST_F(OwnRanks, AddAndLearnAsThoseOfFullRank) {
  const auto own = tiny_weights(tiny_shape("llama"), {.trained = true, .lora = of_own_ranks()}),
             padded = tiny_weights(tiny_shape("llama"), {.trained = true, .lora = {.rank = 4, .alpha = 6}});
  for (size_t i = 0; i < padded->own_params(); ++i) {
    const shape::ParamSpec& spec = padded->params()[i];
    if (padded->index_of(adapter_name(spec, kAdapterB)) < 0 || spec.sizes.size() != 2) continue;
    const std::string module = spec.name.substr(0, spec.name.rfind('.'));
    pad(*own, *padded, module, module == kOwnQuery ? 2.5F / 1.5F : module == kOwnDown ? 2 / 1.5F : 1);
  }
  padded->commit();
  Model first(own, {}), second(padded, {});
  const TokenBatch batch = testing::pack(testing::sequences({19, 5, 33}, 37));
  const at::Tensor a = first.forward(batch), b = second.forward(batch);
  EXPECT_LT((a - b).norm().item<float>(), 1e-5F * b.norm().item<float>());
  train_once(first);
  train_once(second);
  for (const auto& [module, quotient] : {std::pair(kOwnQuery, 2.5F / 1.5F), {kOwnDown, 2 / 1.5F}})
    for (const std::string_view end : {kAdapterA, kAdapterB}) {
      const std::string name = adapter_of(module, end);
      const at::Tensor mine = testing::gradient_of(*own, own->index_of(name));
      const at::Tensor all = testing::gradient_of(*padded, padded->index_of(name));
      const bool is_b = end == kAdapterB;
      const at::Tensor wanted = all.slice(is_b ? 1 : 0, 0, mine.size(is_b ? 1 : 0)) * (is_b ? quotient : 1.0F);
      EXPECT_GT(wanted.norm().item<float>(), 1e-3F) << name;
      EXPECT_LT((mine - wanted).norm().item<float>(), 1e-4F * wanted.norm().item<float>()) << name;
    }
}

TEST_F(OwnRanks, AreSavedAndTrainedOn) {
  for (const bool dora : {false, true}) {
    const auto weights = tiny_weights(tiny_shape("llama"), {.trained = true, .lora = of_own_ranks(dora)});
    const std::string base = directory_ + "/base", adapter = directory_ + "/adapter", merged = directory_ + "/merged";
    save_huggingface(*tiny_weights(tiny_shape("llama")), base);
    save_peft(*weights, adapter, base);
    save_huggingface(*weights, merged);
    const PeftConfig config(adapter);
    EXPECT_EQ(config.rank_of(kOwnQuery), 2);
    EXPECT_EQ(config.scale_of(kOwnQuery), 2.5F);
    EXPECT_EQ(config.rank_of(kOwnDown), 3);
    EXPECT_EQ(config.scale_of(kOwnDown), 2.0F);
    EXPECT_EQ(config.rank_of("model.layers.1.self_attn.q_proj"), 4);
    EXPECT_EQ(load_huggingface(adapter, "", {}, {})->checksum(), load_huggingface(merged, "", {}, {})->checksum());
    const WeightsOptions on{.trained = true, .lora = PeftAdapters(adapter).options()};
    ASSERT_EQ(on.lora.own.size(), 2U);
    EXPECT_EQ(on.lora.own.at(kOwnQuery).rank, 2);
    EXPECT_EQ(on.lora.own.at(kOwnQuery).alpha, 5);
    const auto again = load_huggingface(adapter, "", on, {});
    EXPECT_EQ(again->checksum(), weights->checksum());
    const TokenBatch batch = testing::pack(testing::sequences({19, 5, 33}, 37));
    EXPECT_EQ(to_vector(Model(again, {}).forward(batch)), to_vector(Model(weights, {}).forward(batch)));
  }
}

}  // namespace
}  // namespace collimate::model
