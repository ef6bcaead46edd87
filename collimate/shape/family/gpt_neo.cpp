#include "collimate/base/error.h"
#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;

constexpr SizeKeys kNeoSizes = {"hidden_size", "num_layers", "num_heads"};

// Returns for each layer whether it has the window, from attention_types, as [[["global", "local"], 12]]: lists of
// kinds, and how often each list repeats.
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
    if (!part.is_array() || part.size() != 2 || !part[0].is_array() || !part[1].is_number_integer()) throw wrong();
    for (int64_t times = part[1].get<int64_t>(); times > 0 && static_cast<int64_t>(windows.size()) <= layers; --times)
      for (const json& kind : part[0]) {
        if (kind != "global" && kind != "local") throw wrong();
        windows.push_back(kind == "local");
      }
  }
  if (static_cast<int64_t>(windows.size()) != layers) throw wrong();
  return windows;
}

// Reads GPT-Neo (Black et al. 2021): GPT-2 whose scores are not scaled, whose queries, keys and values have no biases,
// and some of whose blocks have a window.
ModelShape parse_gpt_neo(const Fields& fields, const std::string& family) {
  ModelShape shape = read_sizes(fields, family, kNeoSizes);
  set_learned_positions(shape, fields.count_or("max_position_embeddings", kMaxCount, 2048));
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  const int64_t window = fields.count_or("window_size", kMaxCount, 256);
  const std::vector<bool> windows = read_windows(fields, shape.layers());
  for (size_t layer = 0; layer < shape.blocks.size(); ++layer) {
    Block& block = shape.blocks[layer];
    read_layer_norm(fields, "layer_norm_epsilon", block);
    block.attention.output_bias = true;
    block.attention.scale = 1;
    block.attention.window = windows[layer] && window < shape.max_positions ? window : 0;
    block.mlp = gpt2_mlp(fields, "intermediate_size", shape.hidden, "gelu_new");
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
  add_sizes(shape, kNeoSizes, config);
  add_gpt2_mlp(block.mlp, "intermediate_size", config);
  add_layer_norm(block, "layer_norm_epsilon", config);
  config["max_position_embeddings"] = shape.max_positions;
  config["attention_types"] = {{kinds, 1}};
  config["attention_layers"] = kinds;
  config["window_size"] = window;
}

}  // namespace

std::vector<Family> gpt_neo_families() {
  ModuleNames names = gpt2_names();
  names.query_key_value = {"attn.attention.q_proj", "attn.attention.k_proj", "attn.attention.v_proj"};
  names.attention_output = "attn.attention.out_proj";
  return {family_of("gpt_neo", "GPTNeo", parse_gpt_neo, add_gpt_neo_config, names)};
}

}  // namespace collimate::shape
