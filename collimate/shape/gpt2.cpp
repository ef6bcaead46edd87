#include "collimate/base/error.h"
#include "collimate/shape/family.h"
#include "collimate/shape/spec_builder.h"

namespace collimate::shape {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;

ModelShape parse_gpt2(const Fields& fields, const std::string& family) {
  ModelShape shape;
  shape.family = family;
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

void validate_gpt2(const ModelShape& shape, const std::string& where) {
  if (shape.hidden % shape.heads != 0)
    throw InputError(expectation(where + " n_head", fmt::format("a divisor of n_embd {}", shape.hidden),
                                 std::to_string(shape.heads)));
}

void add_gpt2_config(const ModelShape& shape, json& config) {
  config["n_embd"] = shape.hidden;
  config["n_layer"] = shape.layers;
  config["n_head"] = shape.heads;
  config["n_inner"] = shape.intermediate;
  config["n_positions"] = config["n_ctx"] = shape.max_positions;
  config["layer_norm_epsilon"] = static_cast<double>(shape.norm_epsilon);
  config["activation_function"] = shape.activation;
  config["scale_attn_weights"] = true;
}

void add_gpt2_norm(Builder& out, const ModelShape& shape, const std::string& prefix) {
  out.add(prefix + ".weight", ParamKind::kNorm, {shape.hidden});
  out.add(prefix + ".bias", ParamKind::kBias, {shape.hidden});
}

// A Conv1D of the file: [in, out] there, [out, in] here.
void add_conv1d(Builder& out, const std::string& prefix, int64_t rows, int64_t columns) {
  out.add(prefix + ".weight", ParamKind::kLinear, {rows, columns}).transposed_in_file = true;
  out.add(prefix + ".bias", ParamKind::kBias, {rows});
}

std::vector<ParamSpec> gpt2_specs(const ModelShape& shape) {
  Builder out;
  out.begin_segment(0);
  split_rows(out.add("transformer.wte.weight", ParamKind::kEmbedding, {shape.vocabulary, shape.hidden}), 1);
  out.add("transformer.wpe.weight", ParamKind::kEmbedding, {shape.max_positions, shape.hidden});
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    out.begin_segment(static_cast<int>(layer) + 1);
    const std::string prefix = "transformer.h." + std::to_string(layer) + ".";
    add_gpt2_norm(out, shape, prefix + "ln_1");
    add_conv1d(out, prefix + "attn.c_attn", 3 * shape.hidden, shape.hidden);
    for (ParamSpec* spec : {&out.last(1), &out.last(0)}) {
      split_rows(*spec, shape.head_dim);
      spec->dims[0].blocks = {shape.hidden, shape.hidden, shape.hidden};
    }
    add_conv1d(out, prefix + "attn.c_proj", shape.hidden, shape.hidden);
    split_columns(out.last(1), shape.head_dim);
    add_gpt2_norm(out, shape, prefix + "ln_2");
    add_conv1d(out, prefix + "mlp.c_fc", shape.intermediate, shape.hidden);
    split_rows(out.last(1), 1);
    split_rows(out.last(0), 1);
    add_conv1d(out, prefix + "mlp.c_proj", shape.hidden, shape.intermediate);
    split_columns(out.last(1), 1);
  }
  out.begin_segment(static_cast<int>(shape.layers) + 1);
  add_gpt2_norm(out, shape, "transformer.ln_f");
  add_head(out, shape);
  return out.take();
}

}  // namespace

std::vector<Family> gpt2_families() {
  return {{"gpt2", "GPT2LMHeadModel", "GPT2ForSequenceClassification", parse_gpt2, validate_gpt2, add_gpt2_config,
           gpt2_specs}};
}

}  // namespace collimate::shape
