#include <cmath>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_windows.h"

namespace collimate::shape {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;

constexpr double kTheta = 1e6;  // base in Gemma 3's layers without windows, where a config has none

// Throws InputError for another activation than tanh-approximated GELU, which older configs call "gelu".
void check_activation(const Fields& fields) {
  const char* key = fields.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  const std::string activation = fields.text_or(key, "gelu_pytorch_tanh");
  if (activation != "gelu_pytorch_tanh" && activation != "gelu")
    throw InputError(expectation(fields.at(key), "gelu_pytorch_tanh", "'" + activation + "'"));
}

double softcap(const Fields& fields, const char* key, double fallback) {
  return fields.is_null(key) ? 0 : fields.real_or(key, fallback);
}

// Reads Gemma (2024): a Llama with scaled embeddings, norms that multiply by 1 + weight, and a gate with GELU.
ModelShape parse_gemma(const Fields& fields, const std::string& family) {
  ModelShape shape = read_usual_shape(
      fields, family, {.positions = family == "gemma3_text" ? 131072 : 8192, .head_dim = 256, .tied = true});
  shape.embedding_scale = std::sqrt(static_cast<double>(shape.hidden));
  check_activation(fields);
  fields.require("use_bidirectional_attention", false);
  for (Block& block : shape.blocks) {
    block.norm = NormKind::kRmsOffset;
    block.mlp.activation = Activation::kGeluTanh;
    block.mlp.bias = false;
  }
  if (family != "gemma3_text") read_rope(fields, shape);
  return shape;
}

// Reads Gemma 2 (2024): norms around both halves, caps of scores and logits, and a window in every second layer. Gemma
// 3 (2025) has norms of heads in place of the caps, and windows in five of six layers, which rotate by a base of their
// own.
ModelShape parse_gemma2(const Fields& fields, const std::string& family) {
  const bool third = family == "gemma3_text";
  ModelShape shape = parse_gemma(fields, family);
  const double local_theta =
      third ? read_two_ropes(fields, shape, kTheta, fields.real_or("rope_local_base_freq", 1e4)) : 0;
  shape.logit_softcap = softcap(fields, "final_logit_softcapping", third ? 0 : 30);
  const std::vector<bool> sliding = read_sliding(fields, shape.layers(), [&](int64_t layer) {
    return (layer + 1) % fields.count_or("sliding_window_pattern", kMaxLayers, third ? 6 : 2) != 0;
  });
  const int64_t window = fields.count_or("sliding_window", kMaxCount, 4096);
  for (size_t layer = 0; layer < shape.blocks.size(); ++layer) {
    Block& block = shape.blocks[layer];
    block.place = NormPlace::kAround;
    block.attention.head_norm = third;
    // The Gemma 3 of transformers reads this cap and does not apply it.
    block.attention.softcap = third ? 0 : softcap(fields, "attn_logit_softcapping", 50);
    const int64_t divisor = fields.count_or("query_pre_attn_scalar", kMaxHidden, 256);
    block.attention.scale = 1 / std::sqrt(static_cast<double>(divisor));
    if (!sliding[layer]) continue;
    block.attention.window = window < shape.positions() ? window : 0;
    block.attention.rope_theta = local_theta;
  }
  return shape;
}

void add_gemma_config(const ModelShape& shape, json& config) {
  add_usual_config(shape, config);
  config["hidden_act"] = config["hidden_activation"] = "gelu_pytorch_tanh";
  config["attention_bias"] = shape.blocks.front().attention.bias;
}

json number_or_null(double value) { return value > 0 ? json(value) : json(nullptr); }

void add_gemma2_config(const ModelShape& shape, json& config) {
  add_gemma_config(shape, config);
  const Attention& first = shape.blocks.front().attention;
  config["query_pre_attn_scalar"] = std::llround(1 / (first.scale * first.scale));
  config["attn_logit_softcapping"] = number_or_null(first.softcap);
  config["final_logit_softcapping"] = number_or_null(shape.logit_softcap);
  config["sliding_window"] = shape.max_positions;
  json types = json::array();
  for (const Block& block : shape.blocks) {
    const Attention& attention = block.attention;
    types.push_back(attention.window > 0 || attention.rope_theta > 0 ? kSliding : kFull);
    if (attention.window > 0) config["sliding_window"] = attention.window;
    if (attention.rope_theta > 0) config["rope_local_base_freq"] = attention.rope_theta;
  }
  config["layer_types"] = types;
}

Family member(const char* name, const char* classes, decltype(Family::parse) parse,
              decltype(Family::add_config) add_config) {
  ModuleNames names = llama_names();
  if (parse == parse_gemma2) {
    names.behind_attention = "post_attention_layernorm";
    names.mlp_norm = "pre_feedforward_layernorm";
    names.behind_mlp = "post_feedforward_layernorm";
  }
  return family_of(name, classes, parse, add_config, names);
}

}  // namespace

std::vector<Family> gemma_families() {
  Family third = member("gemma3_text", "Gemma3", parse_gemma2, add_gemma2_config);
  third.score_class = "Gemma3TextForSequenceClassification";
  return {member("gemma", "Gemma", parse_gemma, add_gemma_config),
          member("gemma2", "Gemma2", parse_gemma2, add_gemma2_config), third};
}

}  // namespace collimate::shape
