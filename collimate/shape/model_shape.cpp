#include "collimate/shape/model_shape.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/base/nearest_path.h"
#include "collimate/base/read_file.h"
#include "collimate/shape/config_defaults.h"
#include "collimate/shape/family.h"
#include "collimate/shape/mixture.h"
#include "collimate/shape/text_part.h"

namespace collimate::shape {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;

constexpr int64_t kMaxConfigBytes = int64_t{16} << 20;

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

Head head_of(const Fields& fields) {
  if (fields.has("collimate_head")) return parse_head(fields.text_or("collimate_head", ""));
  if (!fields.has("architectures")) return Head::kLanguageModel;
  const std::string name = fields.raw("architectures").dump();
  return name.find("ForSequenceClassification") != std::string::npos ? Head::kScore : Head::kLanguageModel;
}

void validate(const Experts& experts, const std::string& where) {
  if (experts.count == 0) return;
  if (experts.count % experts.groups != 0)
    throw InputError(expectation(where + " n_group", fmt::format("a divisor of {} experts", experts.count),
                                 std::to_string(experts.groups)));
  const int64_t each = experts.count / experts.groups, most = each * experts.chosen_groups;
  if (experts.groups > 1 && !experts.group_best && each < 2)
    throw InputError(expectation(where + " n_group", "groups of two experts or more", std::to_string(experts.groups)));
  if (experts.per_token > most)
    throw InputError(expectation(where + " num_experts_per_tok", fmt::format("at most {} of the chosen groups", most),
                                 std::to_string(experts.per_token)));
}

// Throws InputError unless LongRoPE has a factor for each pair of channels that are rotated.
void validate_rope(const ModelShape& shape, const std::string& where) {
  const int64_t pairs = shape.turned() / 2;
  for (const char* key : {"short_factor", "long_factor"}) {
    if (!shape.rope_scaling.contains(key)) continue;
    const auto count = static_cast<int64_t>(shape.rope_scaling.at(key).size());
    if (count != pairs)
      throw InputError(expectation(where + " rope_scaling " + key, fmt::format("{} numbers", pairs),
                                   fmt::format("{} numbers", count)));
  }
}

}  // namespace

int64_t ModelShape::positions() const {
  if (rope_scaling.is_null()) return max_positions;
  const json& type = rope_scaling.at("rope_type");
  if (type != "yarn" && type != "linear" && type != "dynamic") return max_positions;
  if (type == "linear" && family == "gemma3_text") return max_positions;  // the factor is in max_positions already
  const auto original = type == "yarn" ? rope_scaling.at("original_max_position_embeddings").get<double>()
                                       : static_cast<double>(max_positions);
  const double reached = std::min(rope_scaling.at("factor").get<double>() * original, static_cast<double>(kMaxCount));
  return std::max(max_positions, static_cast<int64_t>(reached));
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
  const Experts* experts = experts_of(shape);
  if (experts != nullptr && find_family(shape.family, where).names.router.empty())
    throw InputError(expectation(where + " num_experts", fmt::format("none: the family {} has no router", shape.family),
                                 std::to_string(experts->count)));
  for (const Block& block : shape.blocks) {
    validate(block.mlp.experts, where);
    const Attention& attention = block.attention;
    if (attention.head_dim < 1)
      throw InputError(expectation(where + " heads", fmt::format("at most hidden size {}", shape.hidden),
                                   std::to_string(attention.heads)));
    if (attention.heads % attention.kv_heads != 0)
      throw InputError(expectation(where + " num_key_value_heads",
                                   fmt::format("a divisor of {} heads", attention.heads),
                                   std::to_string(attention.kv_heads)));
    if (attention.turned() % 2 != 0 || attention.turned() > attention.head_dim)
      throw InputError(
          expectation(where + " head_dim", "an even number for rotary positions", std::to_string(attention.turned())));
  }
}

void keep_latents(ModelShape& shape, const std::string& where) {
  for (Block& block : shape.blocks) {
    if (block.attention.latent.kv_rank == 0)
      throw InputError(expectation(where, "a model with latent attention", shape.family, "latent_cache: false"));
    block.attention.latent.cached = true;
  }
}

ModelShape parse_model_shape(const json& config, const std::string& where) {
  if (!config.is_object()) throw InputError(expectation(where, "a JSON object", config.type_name()));
  if (const std::optional<json> text = text_part_config(config, where)) {
    ModelShape shape = parse_model_shape(*text, config.contains("text_config") ? where + " text_config" : where);
    shape.text_part_of = config.at("model_type").get<std::string>();
    return shape;
  }
  const Family& family = find_family(Fields(config, where).text_or("model_type", ""), where + " model_type");
  const json filled = with_defaults(config, family.name);
  const Fields fields(filled, where);
  ModelShape shape = family.parse(fields, family.name);
  shape.head = head_of(fields);
  read_ids(fields, shape);
  validate(shape, where);
  validate_rope(shape, where);
  return shape;
}

ModelShape read_model_shape(const std::string& directory) {
  const std::string path = directory + "/config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw InputError(expectation(path, "a model's config.json", "no such file",
                                 std::filesystem::exists(directory, ignored)
                                     ? base::directory_below(directory, "config.json")
                                     : base::nearest_path(directory)));
  const std::string body = base::read_file(path);
  if (static_cast<int64_t>(body.size()) > kMaxConfigBytes)
    throw InputError(expectation(path, "a config of at most 16 MiB", fmt::format("{} bytes", body.size())));
  return parse_model_shape(base::parse_json(body, path, 1), path);
}

}  // namespace collimate::shape
