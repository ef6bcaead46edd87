#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/shape/family.h"

namespace collimate::shape {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;

// attention_types, as [[["global", "local"], 12]]: kinds that repeat so many times. By layer, whether it has the
// window.
std::vector<bool> read_windows(const Fields& fields, int64_t layers) {
  const json fallback = {{{"global", "local"}, layers / 2}};
  const json& types = fields.has("attention_types") ? fields.raw("attention_types") : fallback;
  const auto wrong = [&] {
    return InputError(
        expectation(fields.at("attention_types"),
                    fmt::format("lists of \"global\" and \"local\" and how often each repeats, for {} layers", layers),
                    types.dump()));
  };
  if (!types.is_array()) throw wrong();
  std::vector<bool> windows;
  for (const json& part : types) {
    if (!part.is_array() || part.size() != 2 || !part[0].is_array() || !part[1].is_number_unsigned()) throw wrong();
    for (uint64_t times = part[1].get<uint64_t>(); times > 0 && static_cast<int64_t>(windows.size()) <= layers; --times)
      for (const json& kind : part[0]) {
        if (kind != "global" && kind != "local") throw wrong();
        windows.push_back(kind == "local");
      }
  }
  if (static_cast<int64_t>(windows.size()) != layers) throw wrong();
  return windows;
}

// GPT-Neo (Black et al. 2021): GPT-2 with scores that are not scaled, no biases of queries, keys and values, and in
// some blocks a window.
ModelShape parse_gpt_neo(const Fields& fields, const std::string& family) {
  ModelShape shape;
  shape.family = family;
  shape.vocabulary = fields.count("vocab_size", kMaxCount);
  shape.hidden = fields.count("hidden_size", kMaxHidden);
  const int64_t layers = fields.count("num_layers", kMaxLayers), heads = fields.count("num_heads", kMaxHidden);
  if (shape.hidden % heads != 0)
    throw InputError(expectation(fields.at("num_heads"), fmt::format("a divisor of hidden_size {}", shape.hidden),
                                 std::to_string(heads)));
  shape.max_positions = fields.count_or("max_position_embeddings", kMaxCount, 2048);
  shape.learned_positions = true;
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  if (const std::string activation = fields.text_or("activation_function", "gelu_new"); activation != "gelu_new")
    throw InputError(expectation(fields.at("activation_function"), "gelu_new", "'" + activation + "'"));
  Block block;
  block.norm = NormKind::kLayer;
  block.norm_epsilon = static_cast<float>(fields.real_or("layer_norm_epsilon", 1e-5));
  block.attention = {.heads = heads,
                     .kv_heads = heads,
                     .head_dim = shape.hidden / heads,
                     .rotary = false,
                     .output_bias = true,
                     .scale = 1};
  block.mlp = {fields.count_or("intermediate_size", kMaxHidden, 4 * shape.hidden), /*gated=*/false,
               Activation::kGeluTanh, /*bias=*/true};
  const int64_t window = fields.count_or("window_size", kMaxCount, 256);
  for (const bool has_window : read_windows(fields, layers)) {
    shape.blocks.push_back(block);
    if (has_window && window < shape.max_positions) shape.blocks.back().attention.window = window;
  }
  return shape;
}

void add_gpt_neo_config(const ModelShape& shape, json& config) {
  const Block& block = shape.blocks.front();
  json kinds = json::array();
  int64_t window = 256;
  for (const Block& each : shape.blocks) {
    kinds.push_back(each.attention.window > 0 ? "local" : "global");
    if (each.attention.window > 0) window = each.attention.window;
  }
  config["hidden_size"] = shape.hidden;
  config["num_layers"] = shape.layers();
  config["num_heads"] = block.attention.heads;
  config["intermediate_size"] = block.mlp.intermediate;
  config["max_position_embeddings"] = shape.max_positions;
  config["layer_norm_epsilon"] = static_cast<double>(block.norm_epsilon);
  config["activation_function"] = "gelu_new";
  config["attention_types"] = {{kinds, 1}};
  config["attention_layers"] = kinds;
  config["window_size"] = window;
}

}  // namespace

std::vector<Family> gpt_neo_families() {
  ModuleNames names = gpt2_names();
  names.query_key_value = {"attn.attention.q_proj", "attn.attention.k_proj", "attn.attention.v_proj"};
  names.attention_output = "attn.attention.out_proj";
  return {
      {"gpt_neo", "GPTNeoForCausalLM", "GPTNeoForSequenceClassification", parse_gpt_neo, add_gpt_neo_config, names}};
}

}  // namespace collimate::shape
