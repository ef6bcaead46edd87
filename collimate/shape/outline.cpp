#include "collimate/shape/outline.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "collimate/base/json.h"
#include "collimate/base/read_file.h"
#include "collimate/shape/config_defaults.h"
#include "collimate/shape/family.h"
#include "collimate/shape/fields.h"
#include "collimate/shape/mixture.h"
#include "collimate/shape/text_part.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

double real(int64_t count) { return static_cast<double>(count); }

double attention_parameters(const Outline& m) {
  if (m.latent.kv_rank == 0) return real(m.hidden) * real(m.head_dim) * real(2 * m.heads + 2 * m.kv_heads);
  const Latent& l = m.latent;
  const double query_width = real(m.heads * m.head_dim);
  const double queries = l.q_rank > 0 ? real(l.q_rank) * (real(m.hidden) + query_width) : real(m.hidden) * query_width;
  const double keys = real(m.hidden) * real(l.kv_rank + l.rope_dim) +
                      real(l.kv_rank) * real(m.heads) * real(m.head_dim - l.rope_dim + l.value_dim);
  return queries + keys + real(m.heads * l.value_dim) * real(m.hidden);
}

double mlp_parameters(const Outline& m, int64_t intermediate) {
  return (m.gated ? 3.0 : 2.0) * real(m.hidden) * real(intermediate);
}

// Returns the sum of inputs and outputs over the linear layers of one layer's attention.
double attention_sides(const Outline& m) {
  const double queries = real(m.heads * m.head_dim), keys = real(m.kv_heads * m.head_dim);
  if (m.latent.kv_rank == 0) return 4 * real(m.hidden) + 2 * queries + 2 * keys;
  const Latent& l = m.latent;
  const double q = l.q_rank > 0 ? real(m.hidden) + 2 * real(l.q_rank) + queries : real(m.hidden) + queries;
  const double down = real(m.hidden + l.kv_rank + l.rope_dim);
  const double up = real(l.kv_rank) + real(m.heads) * real(m.head_dim - l.rope_dim + l.value_dim);
  return q + down + up + real(m.heads * l.value_dim) + real(m.hidden);
}

double mlp_sides(const Outline& m, int64_t intermediate) {
  return (m.gated ? 3.0 : 2.0) * real(m.hidden + intermediate);
}

// Returns the parameters of all layers, counting `experts` experts in each layer that routes.
double blocks(const Outline& m, int64_t experts) {
  const double attention = real(m.layers) * attention_parameters(m);
  if (m.experts.count == 0) return attention + real(m.layers) * mlp_parameters(m, m.intermediate);
  const double routed = real(m.layers - m.dense_layers);
  const double router = real(m.hidden) * real(m.experts.count + (m.experts.shared_gate ? 1 : 0));
  return attention + real(m.dense_layers) * mlp_parameters(m, m.intermediate) +
         routed * (router + mlp_parameters(m, experts * m.experts.intermediate + m.experts.shared));
}

// Throws InputError unless the family is known, or the config has the usual keys and is that of a decoder.
void require_decoder(const Fields& fields, const std::string& family) {
  if (family.empty() || std::ranges::count(known_families(), family) > 0) return;
  bool usual = !fields.has("type_vocab_size") && !fields.flag_or("is_encoder_decoder", false);
  for (const char* key : {"num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"})
    usual = usual && fields.has(key);
  if (usual) return;
  throw base::InputError(
      base::expectation(fields.at("model_type"),
                        fmt::format("a family of decoders that is known ({}), or one with LLaMA's keys",
                                    fmt::join(known_families(), ", ")),
                        "'" + family + "'", "a model of one of them"));
}

}  // namespace

Outline outline_of(const ModelShape& shape) {
  const auto mixture = std::ranges::find_if(shape.blocks, has_experts);
  const Block& block = mixture == shape.blocks.end() ? shape.blocks.back() : *mixture;
  const Attention& attention = block.attention;
  Outline model;
  model.name = shape.family;
  model.layers = shape.layers();
  model.hidden = shape.hidden;
  model.heads = attention.heads;
  model.kv_heads = attention.kv_heads;
  model.head_dim = attention.head_dim;
  model.intermediate = block.mlp.intermediate;
  model.vocabulary = shape.vocabulary;
  model.gated = block.mlp.gated;
  model.tied = shape.tied_embeddings;
  model.norm_of_all = attention.norm_of_all;
  model.norms_around = has_norm_behind(block.place) || block.added_scale != 1;
  model.embedding = shape.embedding_width;
  model.positions = shape.learned_positions ? shape.max_positions + shape.unused_positions : 0;
  model.experts = block.mlp.experts;
  if (model.experts.count > 0) model.dense_layers = shape.layers() - routers_of(shape);
  model.latent = attention.latent;
  return model;
}

Outline parse_outline(const nlohmann::json& config, const std::string& where) {
  if (!config.is_object()) throw base::InputError(base::expectation(where, "a JSON object", config.type_name()));
  if (const std::optional<nlohmann::json> text = text_part_config(config, where))
    return parse_outline(*text, config.contains("text_config") ? where + " text_config" : where);
  const Fields fields(config, where);
  const std::string family = fields.text_or("model_type", "");
  for (const Family& known : families())
    if (known.name == family && !known.has_usual_keys) return outline_of(parse_model_shape(config, where));
  require_decoder(fields, family);
  const nlohmann::json filled = with_defaults(config, family);
  return outline_of(read_usual_shape(Fields(filled, where), family));
}

Outline find_outline(const std::string& name) {
  if (const Outline* known = outline_named(name)) return *known;
  if (const std::optional<Outline> sized = sized_outline(name)) return *sized;
  const std::filesystem::path path = std::filesystem::path(name) / "config.json";
  std::error_code unreadable;  // a path that cannot be read, as one whose name is too long, is none
  if (std::filesystem::exists(path, unreadable))
    return parse_outline(base::parse_json(base::read_file(path), path.string(), 1), path.string());
  throw_unknown_outline(name);
}

double block_parameters(const Outline& model) { return blocks(model, model.experts.count); }
double active_block_parameters(const Outline& model) { return blocks(model, model.experts.per_token); }
double table_parameters(const Outline& model) {
  return real(model.vocabulary) * real(model.embedding > 0 ? model.embedding : model.hidden);
}

double total_parameters(const Outline& model) {
  return block_parameters(model) + (model.tied ? 1.0 : 2.0) * table_parameters(model) +
         real(model.positions + 2 * model.embedding) * real(model.hidden);
}

double active_parameters(const Outline& model) {
  return total_parameters(model) - block_parameters(model) + active_block_parameters(model);
}

double adapter_parameters(const Outline& model, int64_t rank) {
  const double layers = real(model.layers) * attention_sides(model);
  if (model.experts.count == 0)
    return real(rank) * (layers + real(model.layers) * mlp_sides(model, model.intermediate));
  const Experts& e = model.experts;
  const double plain = real(model.dense_layers) * mlp_sides(model, model.intermediate);
  const double gate = e.shared_gate ? real(model.hidden + 1) : 0;
  const double shared =
      e.shared > 0 ? real(model.layers - model.dense_layers) * (mlp_sides(model, e.shared) + gate) : 0;
  return real(rank) * (layers + plain + shared);
}

double cached_values(const Outline& model) {
  if (model.latent.kv_rank > 0) return real(model.latent.kv_rank + model.latent.rope_dim);
  return 2.0 * real(model.kv_heads * model.head_dim);
}

}  // namespace collimate::shape
