// DoRA's adapters against the model that they are added to, against merged weights, and after changes. Their numbers:
// tests/golden/dora_test.cpp; equality of bits over every way to compute a row: parity_test.cpp.
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cmath>

#include "collimate/base/at.h"
#include "collimate/base/memory_state.h"
#include "collimate/model/lora.h"
#include "tests/support/base/error_of.h"
#include "tests/support/model/edit_weights.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using testing::tiny_shape;
using testing::tiny_weights;
using testing::to_vector;

// scale 1.5
const LoraOptions kDecomposed{.rank = 4, .alpha = 6, .dora = true};

TokenBatch dora_tokens() { return testing::pack(testing::sequences({19, 5, 33}, 37)); }

// The distance of two lists over the length of the second one.
double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double apart = 0, length = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    apart += std::pow(double{a[i]} - b[i], 2);
    length += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(apart / length);
}

std::vector<float> numbers_of(const Weights& weights, int index) {
  const tensor::HostRead values = weights.values(index);
  return {values.begin(), values.end()};
}

// The length of each row of a matrix.
std::vector<double> lengths_of(const std::vector<float>& matrix, size_t rows) {
  std::vector<double> lengths(rows, 0);
  const size_t width = matrix.size() / rows;
  for (size_t i = 0; i < matrix.size(); ++i) lengths[i / width] += std::pow(double{matrix[i]}, 2);
  for (double& length : lengths) length = std::sqrt(length);
  return lengths;
}

TEST(Dora, BeginsAsTheModelItIsAddedTo) {
  for (const char* family : {"llama", "gpt2", "qwen2", "phi3"}) {
    auto weights = tiny_weights(tiny_shape(family), {.trained = true, .lora = kDecomposed});
    Model plain(tiny_weights(tiny_shape(family)), {}), adapted(weights, {});
    const auto before = to_vector(plain.forward(dora_tokens()));
    EXPECT_GT(relative_distance(to_vector(adapted.forward(dora_tokens())), before), 1e-2) << family;
    initialize_lora(*weights, 9);
    EXPECT_LT(relative_distance(to_vector(adapted.forward(dora_tokens())), before), 1e-5) << family;
    std::ptrdiff_t layers = 0;
    for (size_t i = 0; i < weights->own_params(); ++i) {
      const shape::ParamSpec& spec = weights->params()[i];
      const int lengths = spec.sizes.size() == 2 ? weights->index_of(adapter_name(spec, kAdapterLengths)) : -1;
      if (lengths < 0) continue;
      ++layers;
      const auto given = numbers_of(*weights, lengths);
      const auto wanted = lengths_of(numbers_of(*weights, static_cast<int>(i)), given.size());
      for (size_t r = 0; r < wanted.size(); ++r) EXPECT_NEAR(given[r], wanted[r], 1e-6 * wanted[r]) << spec.name;
    }
    EXPECT_EQ(layers, std::ranges::count_if(weights->params(), is_adapter_b)) << family;
  }
}

TEST(Dora, MergedWeightsGiveNearlyTheSame) {
  const std::vector<std::pair<const char*, std::vector<std::string>>> cases = {
      {"llama", {"all-linear"}}, {"llama", {"up_proj", "k_proj"}}, {"qwen2", {"v_proj"}},
      {"gpt2", {"all-linear"}},  {"gpt_neox", {"all-linear"}},     {"bloom", {"all-linear"}}};
  for (const auto& [family, targets] : cases) {
    LoraOptions lora = kDecomposed;
    lora.targets = targets;
    const auto weights = tiny_weights(tiny_shape(family), {.trained = true, .lora = lora});
    const auto whole = tiny_weights(tiny_shape(family));
    for (size_t i = 0; i < whole->params().size(); ++i) {
      const int index = static_cast<int>(i);
      const auto values = merged_values(*weights, index);
      std::copy(values.begin(), values.end(), testing::edit_of(*whole, index).begin());
      const shape::ParamSpec& spec = weights->params()[i];
      const int lengths = spec.sizes.size() == 2 ? weights->index_of(adapter_name(spec, kAdapterLengths)) : -1;
      if (lengths < 0) continue;
      const auto wanted = numbers_of(*weights, lengths);
      const auto merged = lengths_of(values, wanted.size());
      for (size_t r = 0; r < wanted.size(); ++r) EXPECT_NEAR(merged[r], std::abs(wanted[r]), 1e-5) << family;
    }
    whole->commit();
    Model apart(weights, {}), fused(whole, {});
    EXPECT_LT(relative_distance(to_vector(apart.forward(dora_tokens())), to_vector(fused.forward(dora_tokens()))), 3e-5)
        << family << " " << targets.front();
  }
}

// Factors of rows are made again after each change: those of a model that begins with the changed values.
TEST(Dora, FactorsFollowEachCommit) {
  const WeightsOptions options{.trained = true, .lora = kDecomposed};
  const auto weights = tiny_weights(tiny_shape("qwen2"), options), other = tiny_weights(tiny_shape("qwen2"), options);
  Model model(weights, {}), fresh(other, {});
  const auto before = to_vector(model.forward(dora_tokens()));
  for (float& value : weights->master(4)) value *= 1.25F;
  weights->commit();
  const auto after = to_vector(model.forward(dora_tokens()));
  EXPECT_NE(after, before);
  base::MemoryState state;
  weights->save(state);
  other->commit();
  EXPECT_EQ(to_vector(fresh.forward(dora_tokens())), before);
  EXPECT_EQ(other->version(), weights->version()) << "values of a state may have the version that is there";
  other->load(state);
  EXPECT_EQ(to_vector(fresh.forward(dora_tokens())), after);
  const int first = weights->index_of("model.layers.0.self_attn.q_proj.weight");
  const auto merged = merged_values(*weights, first);
  const auto lengths =
      numbers_of(*weights, weights->index_of(adapter_name(base::at(weights->params(), first), kAdapterLengths)));
  const auto wanted = lengths_of(merged, lengths.size());
  for (size_t r = 0; r < wanted.size(); ++r) EXPECT_NEAR(wanted[r], std::abs(lengths[r]), 1e-5);
}

// A row of zeros has no direction. It stays one, and neither values nor gradients become NaN.
TEST(Dora, RowsOfZerosStay) {
  const auto weights = tiny_weights(tiny_shape("llama"), {.trained = true, .lora = kDecomposed});
  const int first = weights->index_of("model.layers.0.mlp.up_proj.weight");
  const auto width = static_cast<size_t>(base::at(weights->params(), first).sizes[1]);
  std::fill_n(testing::edit_of(*weights, first).begin(), 2 * width, 0.0F);
  initialize_lora(*weights, 9);
  const std::vector<float> lengths = weights->row_lengths(first);
  EXPECT_EQ(lengths[0], 0);
  EXPECT_EQ(lengths[1], 0);
  EXPECT_GT(lengths[2], 0);
  Model model(weights, {});
  std::unique_ptr<ForwardRecord> record;
  const at::Tensor hidden = model.forward_train(dora_tokens(), Recompute::kNone, record);
  const std::vector<int32_t> targets(dora_tokens().ids.size(), 7);
  model.backward(std::move(record),
                 model.log_probs_backward({hidden, targets}, {testing::on_device(at::ones({hidden.size(0)}))}));
  for (const float value : to_vector(hidden)) EXPECT_TRUE(std::isfinite(value));
  for (const float value : testing::all_gradients(*weights)) EXPECT_TRUE(std::isfinite(value));
}

// Weight decay would shrink what the model had: lengths have none, as norms.
TEST(Dora, LengthsHaveNoWeightDecay) {
  int lengths = 0;
  for (const shape::ParamSpec& spec : model_params(tiny_shape("llama"), kDecomposed)) {
    if (!is_adapter(spec)) continue;
    EXPECT_EQ(spec.decay, !spec.name.ends_with(kAdapterLengths)) << spec.name;
    lengths += spec.name.ends_with(kAdapterLengths) ? 1 : 0;
  }
  EXPECT_EQ(lengths, 14);
}

TEST(Dora, TensorRanksAreRefused) {
  const WeightsOptions options{
      .trained = true, .tag = "policy", .lora = kDecomposed, .ranks = {.tensor = {{}, {0, 2}}}};
  EXPECT_EQ(base::message_of([&] { tiny_weights(tiny_shape("llama"), options); }),
            "[weights of policy] expected tp 1 with lora.dora, which takes the lengths of whole rows of matrices, got "
            "tp 2; try tp 1, or dora: false");
}

}  // namespace
}  // namespace collimate::model
