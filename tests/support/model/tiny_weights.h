#pragma once

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/model/model.h"
#include "collimate/tensor/results.h"
#include "tests/support/model/pack_sequences.h"

namespace collimate::model::testing {

// A small model of each family with every kind of parameter away from its trivial value.
inline shape::ModelShape tiny_shape(const std::string& family) {
  const bool learned = family == "gpt2" || family == "gpt_neo" || family == "opt";
  const bool windows = family == "mistral" || family == "phi3" || family == "gpt_neo";
  shape::Block block;
  const bool bias = family == "qwen2" || family == "qwen2_moe" || family == "qwen";
  block.attention = {.heads = 4, .kv_heads = 2, .head_dim = 8, .bias = bias};
  if (family == "qwen") block.attention.kv_heads = 4;
  block.attention.head_norm = family == "qwen3" || family == "qwen3_moe" || family == "dots1";
  block.mlp = {.intermediate = 40};
  shape::Experts experts;
  if (family == "mixtral") experts = {.count = 4, .per_token = 2, .intermediate = 40, .normalized = true};
  if (family == "qwen3_moe") experts = {.count = 5, .per_token = 3, .intermediate = 24, .normalized = true};
  if (family == "qwen2_moe")
    experts = {.count = 4, .per_token = 2, .intermediate = 12, .shared = 20, .shared_gate = true};
  if (family == "dots1") {
    experts = {.count = 6, .per_token = 2, .intermediate = 20, .shared = 40, .sigmoid = true, .corrected = true};
    experts.groups = 3;
    experts.chosen_groups = 2;
    experts.scale = 1.5;
  }
  if (learned) {
    block.norm = shape::NormKind::kLayer;
    block.attention = {.heads = 4, .kv_heads = 4, .head_dim = 4, .rotary = false, .output_bias = true};
    block.attention.bias = family != "gpt_neo";
    block.attention.scale = family == "gpt_neo" ? 1 : 0;
    block.mlp = {40, /*gated=*/false, shape::Activation::kGeluTanh, /*bias=*/true};
    if (family == "opt") block.mlp.activation = shape::Activation::kRelu;
  }
  if (family == "gpt_neox") {
    block.parallel = true;
    block.norm = shape::NormKind::kLayer;
    block.attention = {.heads = 4, .kv_heads = 4, .head_dim = 8, .rotary_dim = 4, .bias = true, .output_bias = true};
    block.mlp = {40, /*gated=*/false, shape::Activation::kGelu, /*bias=*/true};
  }
  if (family == "gptj") {
    block.parallel = block.shared_norm = true;
    block.norm = shape::NormKind::kLayer;
    block.attention = {.heads = 4, .kv_heads = 4, .head_dim = 8, .rotary_dim = 4};
    block.mlp = {40, /*gated=*/false, shape::Activation::kGeluTanh, /*bias=*/true};
  }
  const bool partly_turned = family == "gpt_neox" || family == "gptj";
  shape::ModelShape shape;
  shape.family = family;
  shape.vocabulary = 37;
  shape.hidden = learned ? 16 : partly_turned ? 32 : 24;
  shape.max_positions = 96;
  shape.learned_positions = learned;
  shape.unused_positions = family == "opt" ? 2 : 0;
  shape.blocks = {block, block};
  shape.blocks[1].mlp.experts = experts;
  if (family == "mixtral" || family == "qwen3_moe") shape.blocks[0].mlp.experts = experts;
  if (windows) shape.blocks[1].attention.window = 7;
  shape.tied_embeddings = family != "qwen2" && family != "gptj";
  shape.head_bias = family == "gptj";
  return shape;
}

// Adapters that change what the model computes.
inline void fill_adapters(Weights& weights) {
  initialize_lora(weights, 5);
  for (size_t i = weights.own_params(); i < weights.params().size(); ++i) {
    const auto& spec = weights.params()[i];
    const tensor::HostEdit values = weights.edit(static_cast<int>(i));
    for (int64_t j = 0; j < spec.count(); ++j)
      values[j] += 0.1F * std::sin(static_cast<float>(j) * 2.3F + static_cast<float>(i));
  }
  weights.commit();
}

// Parameters of the model itself get values; adapters where the options ask for them.
inline std::shared_ptr<Weights> tiny_weights(const shape::ModelShape& shape, WeightsOptions options = {true}) {
  auto weights = std::make_shared<Weights>(shape, options, tensor::Exec{});
  weights->initialize(3, 0.3F);
  // Biases, norms and score heads get values too.
  for (size_t i = 0; i < weights->own_params(); ++i) {
    const auto& spec = weights->params()[i];
    if (spec.sizes.size() == 2 && spec.name != "score.weight") continue;
    const tensor::HostEdit values = weights->edit(static_cast<int>(i));
    for (int64_t j = 0; j < spec.count(); ++j)
      values[j] += 0.2F * std::sin(static_cast<float>(j) * 1.7F + static_cast<float>(i));
  }
  weights->commit();
  if (options.lora.on()) fill_adapters(*weights);
  return weights;
}

// A parameter's values, or its gradient, as a tensor of its own.
inline at::Tensor tensor_of(const Weights& weights, int index, const tensor::HostRead& numbers) {
  at::Tensor out = at::empty(base::at(weights.params(), index).sizes, at::kFloat);
  std::copy(numbers.begin(), numbers.end(), out.data_ptr<float>());
  return out;
}
inline at::Tensor values_of(Weights& weights, int index) { return tensor_of(weights, index, weights.values(index)); }
inline at::Tensor gradient_of(Weights& weights, int index) {
  return tensor_of(weights, index, weights.gradient_of(index));
}

// Sequences of the given lengths with ids from a fixed formula.
inline std::vector<std::vector<int32_t>> sequences(const std::vector<int>& lengths, int vocabulary) {
  std::vector<std::vector<int32_t>> all;
  for (size_t s = 0; s < lengths.size(); ++s) {
    all.emplace_back();
    for (int i = 0; i < lengths[s]; ++i)
      all.back().push_back(static_cast<int32_t>((static_cast<size_t>(i * i) * 7 + s * 13 + static_cast<size_t>(i)) %
                                                static_cast<size_t>(vocabulary)));
  }
  return all;
}

inline TokenBatch pack(const std::vector<std::vector<int32_t>>& all) {
  std::vector<std::span<const int32_t>> spans(all.begin(), all.end());
  return pack_sequences(spans);
}

inline std::vector<float> to_vector(const at::Tensor& tensor) {
  const tensor::HostTensor numbers({}, tensor);
  return {numbers.floats().begin(), numbers.floats().end()};
}

inline std::vector<float> all_gradients(Weights& weights) {
  std::vector<float> all;
  for (int s = 0; s < weights.segments(); ++s) {
    const auto gradient = weights.gradient(s);
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
  return all;
}

inline std::string shared_models() {
  const char* shared = std::getenv("COLLIMATE_SHARED");
  return std::string(shared != nullptr ? shared : COLLIMATE_SOURCE_DIR "/../shared") + "/data/models";
}

// A test with the name of a directory, which the test may make and which is removed afterwards.
class InDirectory : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string directory_ = std::filesystem::temp_directory_path() / ("collimate-model-" + std::to_string(::getpid()));
};

}  // namespace collimate::model::testing
