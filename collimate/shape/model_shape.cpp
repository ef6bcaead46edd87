#include "collimate/shape/model_shape.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "collimate/base/error.h"

namespace collimate::shape {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;

constexpr int64_t kMaxCount = int64_t{1} << 24;
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxHidden = int64_t{1} << 20;
constexpr int64_t kMaxConfigBytes = int64_t{16} << 20;

// Typed reading of one config object; every error names the file and the key.
class Fields {
 public:
  Fields(const json& config, std::string where) : config_(config), where_(std::move(where)) {}

  bool has(const char* key) const { return config_.contains(key) && !config_.at(key).is_null(); }
  std::string at(const std::string& key) const { return where_ + " " + key; }

  int64_t count(const char* key, int64_t limit) const {
    if (!has(key)) throw InputError(expectation(at(key), "a number", "nothing"));
    const json& value = config_.at(key);
    const bool good = value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > kMaxCount) &&
                      value.get<int64_t>() >= 1 && value.get<int64_t>() <= limit;
    if (!good) throw InputError(expectation(at(key), fmt::format("a whole number from 1 to {}", limit), value.dump()));
    return value.get<int64_t>();
  }
  int64_t count_or(const char* key, int64_t limit, int64_t fallback) const {
    return has(key) ? count(key, limit) : fallback;
  }
  double real_or(const char* key, double fallback) const {
    if (!has(key)) return fallback;
    const json& value = config_.at(key);
    if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>()))
      throw InputError(expectation(at(key), "a positive number", value.dump()));
    return value.get<double>();
  }
  bool flag_or(const char* key, bool fallback) const {
    if (!has(key)) return fallback;
    if (!config_.at(key).is_boolean()) throw InputError(expectation(at(key), "true or false", config_.at(key).dump()));
    return config_.at(key).get<bool>();
  }
  std::string text_or(const char* key, const std::string& fallback) const {
    if (!has(key)) return fallback;
    if (!config_.at(key).is_string()) throw InputError(expectation(at(key), "a string", config_.at(key).dump()));
    return config_.at(key).get<std::string>();
  }
  int64_t id_or(const char* key, int64_t fallback) const {
    if (!has(key)) return fallback;
    if (!config_.at(key).is_number_integer())
      throw InputError(expectation(at(key), "a token id", config_.at(key).dump()));
    return config_.at(key).get<int64_t>();
  }
  const json& raw(const char* key) const { return config_.at(key); }

 private:
  const json& config_;
  std::string where_;
};

void read_ids(const Fields& fields, ModelShape& shape) {
  shape.bos_id = fields.id_or("bos_token_id", -1);
  shape.pad_id = fields.id_or("pad_token_id", -1);
  if (!fields.has("eos_token_id")) return;
  const json& eos = fields.raw("eos_token_id");
  for (const json& id : eos.is_array() ? eos : json::array({eos})) {
    if (!id.is_number_integer()) throw InputError(expectation(fields.at("eos_token_id"), "token ids", eos.dump()));
    shape.eos_ids.push_back(id.get<int64_t>());
  }
}

std::string family_of(const Fields& fields) {
  const std::string family = fields.text_or("model_type", "");
  const auto& known = known_families();
  if (std::find(known.begin(), known.end(), family) == known.end())
    throw InputError(expectation(fields.at("model_type"), fmt::format("one of {}", fmt::join(known, ", ")),
                                 family.empty() ? "nothing" : "'" + family + "'"));
  return family;
}

Head head_of(const Fields& fields) {
  if (fields.has("collimate_head")) return parse_head(fields.text_or("collimate_head", ""));
  if (!fields.has("architectures")) return Head::kLanguageModel;
  const std::string name = fields.raw("architectures").dump();
  return name.find("ForSequenceClassification") != std::string::npos ? Head::kScore : Head::kLanguageModel;
}

void read_rope_scaling(const json& scaling, const std::string& where, ModelShape& shape) {
  if (!scaling.is_object()) throw InputError(expectation(where, "an object", scaling.dump()));
  const Fields fields(scaling, where);
  const std::string type = fields.text_or("rope_type", fields.text_or("type", "default"));
  if (type == "default") return;
  if (type != "linear" && type != "dynamic" && type != "llama3")
    throw InputError(expectation(where + " rope_type", "one of default, linear, dynamic, llama3", "'" + type + "'"));
  fields.real_or("factor", 1.0);
  json kept = {{"rope_type", type}};
  if (!fields.has("factor")) throw InputError(expectation(where + " factor", "a positive number", "nothing"));
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    if (fields.has(key)) {
      kept[key] = fields.real_or(key, 1.0);
    } else if (type == "llama3") {
      throw InputError(expectation(where + " " + key, "a positive number", "nothing"));
    }
  }
  shape.rope_scaling = kept;
}

void read_rope(const Fields& fields, ModelShape& shape) {
  shape.rope_theta = fields.real_or("rope_theta", 10000.0);
  if (fields.has("rope_scaling")) read_rope_scaling(fields.raw("rope_scaling"), fields.at("rope_scaling"), shape);
  if (!fields.has("rope_parameters")) return;
  const json& parameters = fields.raw("rope_parameters");  // the place that newer configs use for both
  read_rope_scaling(parameters, fields.at("rope_parameters"), shape);
  shape.rope_theta = Fields(parameters, fields.at("rope_parameters")).real_or("rope_theta", shape.rope_theta);
}

void reject_sliding_window(const Fields& fields, const ModelShape& shape) {
  if (!fields.has("sliding_window") || (shape.family == "qwen2" && !fields.flag_or("use_sliding_window", false)))
    return;
  if (fields.count("sliding_window", kMaxCount) < shape.max_positions)
    throw InputError(expectation(fields.at("sliding_window"), "null or at least max_position_embeddings",
                                 fields.raw("sliding_window").dump(), "lowering max_position_embeddings to it"));
}

ModelShape parse_llama(const Fields& fields, const std::string& family) {
  ModelShape shape;
  shape.family = family;
  shape.vocabulary = fields.count("vocab_size", kMaxCount);
  shape.hidden = fields.count("hidden_size", kMaxHidden);
  shape.layers = fields.count("num_hidden_layers", kMaxLayers);
  shape.heads = fields.count("num_attention_heads", kMaxHidden);
  shape.kv_heads = fields.count_or("num_key_value_heads", kMaxHidden, shape.heads);
  shape.head_dim = fields.count_or("head_dim", kMaxHidden, shape.hidden / shape.heads);
  shape.intermediate = fields.count("intermediate_size", kMaxHidden);
  shape.max_positions = fields.count_or("max_position_embeddings", kMaxCount, 2048);
  shape.norm_epsilon = static_cast<float>(fields.real_or("rms_norm_eps", 1e-6));
  shape.activation = fields.text_or("hidden_act", "silu");
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  shape.attention_bias = family == "qwen2" || fields.flag_or("attention_bias", false);
  shape.output_bias = family == "llama" && shape.attention_bias;
  shape.mlp_bias = family == "llama" && fields.flag_or("mlp_bias", false);
  read_rope(fields, shape);
  reject_sliding_window(fields, shape);
  if (shape.activation != "silu")
    throw InputError(expectation(fields.at("hidden_act"), "silu", "'" + shape.activation + "'"));
  return shape;
}

ModelShape parse_gpt2(const Fields& fields) {
  ModelShape shape;
  shape.family = "gpt2";
  shape.vocabulary = fields.count("vocab_size", kMaxCount);
  shape.hidden = fields.count("n_embd", kMaxHidden);
  shape.layers = fields.count("n_layer", kMaxLayers);
  shape.heads = fields.count("n_head", kMaxHidden);
  shape.kv_heads = shape.heads;
  shape.head_dim = shape.hidden / shape.heads;
  shape.intermediate = fields.count_or("n_inner", kMaxHidden, 4 * shape.hidden);
  shape.max_positions = fields.count("n_positions", kMaxCount);
  shape.norm_epsilon = static_cast<float>(fields.real_or("layer_norm_epsilon", 1e-5));
  shape.activation = fields.text_or("activation_function", "gelu_new");
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  shape.attention_bias = shape.output_bias = shape.mlp_bias = true;
  if (shape.activation == "gelu_pytorch_tanh") shape.activation = "gelu_new";
  if (shape.activation != "gelu_new")
    throw InputError(expectation(fields.at("activation_function"), "gelu_new", "'" + shape.activation + "'"));
  if (!fields.flag_or("scale_attn_weights", true))
    throw InputError(expectation(fields.at("scale_attn_weights"), "true", "false"));
  if (fields.flag_or("scale_attn_by_inverse_layer_idx", false))
    throw InputError(expectation(fields.at("scale_attn_by_inverse_layer_idx"), "false", "true"));
  return shape;
}

}  // namespace

const std::vector<std::string>& known_families() {
  static const std::vector<std::string> kFamilies = {"gpt2", "llama", "mistral", "qwen2"};
  return kFamilies;
}

Head parse_head(const std::string& name) {
  for (const Head head : {Head::kLanguageModel, Head::kScore, Head::kValue})
    if (name == head_name(head)) return head;
  throw InputError(expectation("head", "one of lm, score, value", "'" + name + "'"));
}

const char* head_name(Head head) {
  return head == Head::kLanguageModel ? "lm" : head == Head::kScore ? "score" : "value";
}

void validate(const ModelShape& shape, const std::string& where) {
  if (shape.head_dim < 1)
    throw InputError(expectation(where + " heads", fmt::format("at most hidden size {}", shape.hidden),
                                 std::to_string(shape.heads)));
  if (shape.family == "gpt2" && shape.hidden % shape.heads != 0)
    throw InputError(expectation(where + " n_head", fmt::format("a divisor of n_embd {}", shape.hidden),
                                 std::to_string(shape.heads)));
  if (shape.heads % shape.kv_heads != 0)
    throw InputError(expectation(where + " num_key_value_heads", fmt::format("a divisor of {} heads", shape.heads),
                                 std::to_string(shape.kv_heads)));
  if (shape.family != "gpt2" && shape.head_dim % 2 != 0)
    throw InputError(
        expectation(where + " head_dim", "an even number for rotary positions", std::to_string(shape.head_dim)));
}

ModelShape parse_model_shape(const json& config, const std::string& where) {
  if (!config.is_object()) throw InputError(expectation(where, "a JSON object", config.type_name()));
  const Fields fields(config, where);
  const std::string family = family_of(fields);
  ModelShape shape = family == "gpt2" ? parse_gpt2(fields) : parse_llama(fields, family);
  shape.head = head_of(fields);
  read_ids(fields, shape);
  validate(shape, where);
  return shape;
}

ModelShape read_model_shape(const std::string& directory) {
  const std::string path = directory + "/config.json";
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(expectation(path, "a model's config.json", "no such file"));
  std::ostringstream text;
  text << file.rdbuf();
  const std::string body = text.str();
  if (static_cast<int64_t>(body.size()) > kMaxConfigBytes)
    throw InputError(expectation(path, "a config of at most 16 MiB", fmt::format("{} bytes", body.size())));
  const json config = json::parse(body, nullptr, false);
  if (config.is_discarded()) throw InputError(expectation(path, "JSON", "text that does not parse"));
  return parse_model_shape(config, path);
}

}  // namespace collimate::shape
