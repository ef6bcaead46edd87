#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/model/model.h"
#include "collimate/tensor/results.h"
#include "tests/support/base/temporary_directory.h"
#include "tests/support/model/pack_sequences.h"

namespace collimate::model::testing {

// Names that tiny_shape knows: families, and models that differ from their family's others.
inline std::vector<std::string> tiny_models() {
  std::vector<std::string> names = shape::known_families();
  names.emplace_back("opt_350m");
  names.emplace_back("opt_without_end");  // nothing but a tied head is behind its blocks
  names.emplace_back("cohere_by_head");   // norms of heads by weights of each
  return names;
}

// Blocks of GPT-2 and of those that differ from it by little.
inline shape::Block tiny_gpt_block(const std::string& family) {
  shape::Block block;
  block.norm = shape::NormKind::kLayer;
  block.mlp = {40, /*gated=*/false, shape::Activation::kGeluTanh, /*bias=*/true};
  block.attention = {.heads = 4, .kv_heads = 4, .head_dim = 4, .rotary = false, .bias = true, .output_bias = true};
  if (family == "gpt_neo") block.attention.bias = false, block.attention.scale = 1;
  if (family == "opt") block.mlp.activation = shape::Activation::kRelu;
  if (family == "gpt_neox") {
    block.parallel = true;
    block.attention = {.heads = 4, .kv_heads = 4, .head_dim = 8, .rotary_dim = 4, .bias = true, .output_bias = true};
    block.mlp.activation = shape::Activation::kGelu;
  }
  if (family == "gptj") {
    block.parallel = block.shared_norm = true;
    block.attention = {.heads = 4, .kv_heads = 4, .head_dim = 8, .rotary_dim = 4};
  }
  if (family == "falcon") {
    block.parallel = true;
    block.attention = {.heads = 4, .kv_heads = 2, .head_dim = 8};
    block.mlp.bias = false;
    block.mlp.activation = shape::Activation::kGelu;
  }
  if (family == "phi") {
    block.parallel = block.shared_norm = true;
    block.attention = {.heads = 4, .kv_heads = 2, .head_dim = 8, .rotary_dim = 4, .bias = true, .output_bias = true};
  }
  if (family == "bloom") {
    block.attention.head_dim = 8, block.attention.alibi = true;
    block.mlp.intermediate = 128;
  }
  return block;
}

// Changes a Llama's block to one of a family that has its norms elsewhere, or of other kinds, or factors.
inline void change_tiny_block(const std::string& family, shape::Block& block) {
  shape::Attention& attention = block.attention;
  if (family.starts_with("olmo") || family == "exaone4" || family == "hunyuan_v1_dense") attention.head_norm = true;
  attention.norm_of_all = family.starts_with("olmo");
  attention.norm_behind_turn = family == "hunyuan_v1_dense";
  if (family == "olmo2" || family == "olmo3" || family == "exaone4") block.place = shape::NormPlace::kBehind;
  if (family == "hyperclovax") block.place = shape::NormPlace::kAround;
  if (family.starts_with("granite") || family == "hyperclovax") {
    attention.scale = 0.3;
    block.added_scale = 0.6;
  }
  if (family.starts_with("cohere")) {
    block.norm = shape::NormKind::kLayerUnbiased;
    block.parallel = block.shared_norm = true;
  }
  for (const char* squared : {"nemotron", "arcee", "jais2"})
    if (family == squared) block.mlp = {40, /*gated=*/false, shape::Activation::kReluSquared};
  if (family == "nemotron") {
    block.norm = shape::NormKind::kLayerOffset;
    attention.rotary_dim = 4;
  }
  if (family == "gpt_oss") {
    attention.bias = attention.output_bias = attention.sinks = true;
    block.mlp = {.intermediate = 40, .activation = shape::Activation::kBoundedSwish, .slope = 1.7, .bound = 0.3};
  }
  if (family != "jais2") return;
  block.norm = shape::NormKind::kLayer;
  attention.bias = attention.output_bias = block.mlp.bias = true;
}

// Blocks of Llama and of those that differ from it by little.
inline shape::Block tiny_llama_block(const std::string& family) {
  shape::Block block;
  block.attention = {.heads = 4, .kv_heads = 2, .head_dim = 8, .bias = family.starts_with("qwen2") || family == "qwen"};
  if (family == "qwen") block.attention.kv_heads = 4;
  block.attention.head_norm = family.starts_with("qwen3") || family == "gemma3_text" || family == "dots1";
  block.mlp = {.intermediate = 40};
  if (family.starts_with("deepseek")) {
    block.attention = {.heads = 4, .kv_heads = 4, .head_dim = 12, .rotary_dim = 4, .paired = true};
    block.attention.latent = {.q_rank = 0, .kv_rank = 16, .rope_dim = 4, .value_dim = 8};
    if (family == "deepseek_v3") block.attention.latent = {12, 16, 4, 16, /*cached=*/true};
  }
  if (family == "starcoder2") {
    block.norm = shape::NormKind::kLayer;
    block.attention.bias = block.attention.output_bias = true;
    block.mlp = {40, /*gated=*/false, shape::Activation::kGeluTanh, /*bias=*/true};
  }
  if (family == "stablelm") block.norm = shape::NormKind::kLayer;
  if (family.starts_with("glm") || family == "stablelm") block.attention.rotary_dim = 4;
  for (const char* biased : {"glm", "glm4", "glm4_moe", "stablelm", "seed_oss", "ernie4_5"})
    if (family == biased) block.attention.bias = true;
  if (family == "glm4_moe") block.attention.head_norm = true;
  if (family == "glm4") block.place = shape::NormPlace::kAround;
  if (family == "ernie4_5") block.attention.output_bias = block.mlp.bias = true;
  change_tiny_block(family, block);
  if (!family.starts_with("gemma")) return block;
  block.norm = shape::NormKind::kRmsOffset;
  block.mlp.activation = shape::Activation::kGeluTanh;
  if (family == "gemma") return block;
  block.place = shape::NormPlace::kAround;
  block.attention.scale = 0.25;
  block.attention.softcap = family == "gemma2" ? 2 : 0;
  return block;
}

// Routed experts of a mixture; none of another family.
inline shape::Experts tiny_experts(const std::string& family) {
  if (family == "mixtral") return {.count = 4, .per_token = 2, .intermediate = 40, .normalized = true};
  if (family == "qwen3_moe") return {.count = 5, .per_token = 3, .intermediate = 24, .normalized = true};
  if (family.starts_with("granitemoe"))
    return {
        .count = 4, .per_token = 2, .intermediate = 40, .shared = family == "granitemoe" ? 0 : 20, .normalized = true};
  if (family == "gpt_oss")
    return {.count = 4, .per_token = 2, .intermediate = 40, .router_bias = true, .biased = true, .normalized = true};
  if (family == "olmoe") return {.count = 4, .per_token = 2, .intermediate = 40};
  if (family == "qwen2_moe") return {.count = 4, .per_token = 2, .intermediate = 12, .shared = 20, .shared_gate = true};
  shape::Experts experts;
  const bool second = family == "deepseek_v2";
  if (!second && family != "deepseek_v3" && family != "dots1" && family != "glm4_moe") return experts;
  experts = {.count = 6, .per_token = 2, .intermediate = 20, .shared = 40, .sigmoid = !second, .corrected = !second};
  experts.group_best = second;
  experts.groups = 3;
  experts.chosen_groups = 2;
  experts.scale = 1.5;
  return experts;
}

// Families whose small model is described here; one that is not does not become a Llama.
inline constexpr std::string_view kTinyFamilies[] = {"arcee",
                                                     "bloom",
                                                     "cohere",
                                                     "cohere2",
                                                     "cwm",
                                                     "deepseek_v2",
                                                     "deepseek_v3",
                                                     "dots1",
                                                     "ernie4_5",
                                                     "exaone4",
                                                     "falcon",
                                                     "gemma",
                                                     "gemma2",
                                                     "gemma3_text",
                                                     "glm",
                                                     "glm4",
                                                     "glm4_moe",
                                                     "gpt2",
                                                     "gpt_neo",
                                                     "gpt_neox",
                                                     "gpt_oss",
                                                     "gptj",
                                                     "granite",
                                                     "granitemoe",
                                                     "granitemoeshared",
                                                     "helium",
                                                     "hunyuan_v1_dense",
                                                     "hyperclovax",
                                                     "jais2",
                                                     "llama",
                                                     "ministral",
                                                     "mistral",
                                                     "mixtral",
                                                     "nemotron",
                                                     "olmo2",
                                                     "olmo3",
                                                     "olmoe",
                                                     "opt",
                                                     "phi",
                                                     "phi3",
                                                     "qwen",
                                                     "qwen2",
                                                     "qwen2_moe",
                                                     "qwen3",
                                                     "qwen3_moe",
                                                     "seed_oss",
                                                     "smollm3",
                                                     "stablelm",
                                                     "starcoder2"};

// A small model of each name with every kind of parameter away from its trivial value.
inline shape::ModelShape tiny_shape(const std::string& name) {
  const std::string family = name.starts_with("opt_") ? "opt" : name == "cohere_by_head" ? "cohere" : name;
  COLLIMATE_CHECK(std::ranges::count(kTinyFamilies, family) == 1, "no small model of family {}", family);
  const bool learned = family == "gpt2" || family == "gpt_neo" || family == "opt";
  const bool wide =
      family == "bloom" || family == "gpt_neox" || family == "gptj" || family == "phi" || family == "falcon";
  shape::Block block = learned || wide ? tiny_gpt_block(family) : tiny_llama_block(family);
  shape::ModelShape shape;
  shape.family = family;
  shape.vocabulary = 37;
  shape.hidden = learned ? 16 : wide || family == "stablelm" ? 32 : 24;
  shape.max_positions = 96;
  shape.learned_positions = learned;
  shape.unused_positions = family == "opt" ? 2 : 0;
  if (name.starts_with("opt_")) {
    block.place = shape::NormPlace::kAfter;
    shape.final_norm = false;
    if (name == "opt_350m") shape.embedding_width = 12;
  }
  block.attention.head_norm = block.attention.head_norm || name == "cohere_by_head";
  block.attention.norm_by_head = name == "cohere_by_head";
  shape.blocks = {block, block};
  shape.blocks[1].mlp.experts = tiny_experts(family);
  if (family == "mixtral" || family == "qwen3_moe" || family == "olmoe" || family == "gpt_oss" ||
      family.starts_with("granitemoe"))
    shape.blocks[0].mlp.experts = shape.blocks[1].mlp.experts;
  for (const char* with_window : {"gpt_oss", "mistral", "phi3", "gpt_neo", "gemma2", "gemma3_text", "olmo3", "exaone4",
                                  "cohere2", "cwm", "ministral"})
    if (family == with_window) shape.blocks[1].attention.window = 7;
  if (family == "gemma3_text") shape.blocks[1].attention.rope_theta = 300;
  if (family == "smollm3") shape.blocks[1].attention.rotary = false;
  if (family == "exaone4" || family == "cohere2") shape.blocks[0].attention.rotary = false;
  if (family == "olmo3") shape.blocks[1].attention.rope_theta = 300;
  if (family.starts_with("granite") || family == "hyperclovax") shape.embedding_scale = 3;
  if (family.starts_with("granite") || family == "hyperclovax" || family.starts_with("cohere")) shape.logit_scale = 0.5;
  if (family.starts_with("gemma")) shape.embedding_scale = std::sqrt(24.0);
  shape.logit_softcap = family == "gemma2" ? 3 : 0;
  shape.embedding_norm = family == "bloom";
  shape.tied_embeddings = family != "qwen2" && family != "gptj" && family != "phi";
  shape.head_bias = family == "gptj" || family == "phi";
  return shape;
}

// Adds by(place in the whole parameter) to what this rank has of it.
template <class By>
void change_values(Weights& weights, size_t index, const By& by) {
  const shape::ParamSpec& spec = weights.params()[index];
  std::vector<float> whole(static_cast<size_t>(weights.whole_params()[index].count()));
  for (size_t j = 0; j < whole.size(); ++j) whole[j] = by(j);
  std::vector<float> mine(static_cast<size_t>(spec.count()));
  spec.cut < 0 ? void(mine = whole) : shape::take_pieces(spec, whole, mine);
  if (spec.absent()) return;
  const Share& kept = weights.kept(spec.segment);  // all of a segment that no ranks share
  const tensor::HostEdit values(tensor::Exec{}, weights.kept_values(spec.segment));
  for (int64_t j = std::max<int64_t>(0, kept.begin - spec.offset); j < std::min(spec.count(), kept.end - spec.offset);
       ++j)
    values[static_cast<size_t>(spec.offset + j - kept.begin)] += mine[static_cast<size_t>(j)];
}

// Adapters that change what the model computes.
inline void fill_adapters(Weights& weights) {
  initialize_lora(weights, 5);
  for (size_t i = weights.own_params(); i < weights.params().size(); ++i) {
    change_values(weights, i,
                  [&](size_t j) { return 0.1F * std::sin(static_cast<float>(j) * 2.3F + static_cast<float>(i)); });
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
    if (is_of_base(options, weights->params(), spec.segment)) continue;
    change_values(*weights, i,
                  [&](size_t j) { return 0.2F * std::sin(static_cast<float>(j) * 1.7F + static_cast<float>(i)); });
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

// The batch with keys of dropout: by token, of `seed`.
inline TokenBatch noisy(TokenBatch batch, uint64_t seed = 1) {
  for (size_t t = 0; t < batch.ids.size(); ++t) batch.noise.push_back(base::mix(seed, t));
  return batch;
}

inline std::vector<float> to_vector(const at::Tensor& tensor) {
  std::vector<float> numbers(static_cast<size_t>(tensor.numel()));
  at::from_blob(numbers.data(), tensor.sizes(), at::kFloat).copy_(tensor);
  return numbers;
}

// The tensor where operations may read it: itself, or a copy.
inline at::Tensor on_device(const at::Tensor& values) {
  if (tensor::default_device().reads_host_memory()) return values;
  return tensor::empty_result({}, values.sizes(), values.scalar_type()).copy_(values);
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

// A test with the name of a directory of its own, which is empty at first and removed afterwards.
class InDirectory : public ::testing::Test {
  const base::TemporaryDirectory made_;

 protected:
  std::string directory_ = made_.path();
};

}  // namespace collimate::model::testing
