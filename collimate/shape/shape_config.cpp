#include "collimate/base/at.h"
#include "collimate/shape/family.h"
#include "collimate/shape/param_spec.h"

namespace collimate::shape {

using nlohmann::json;

namespace {

// Keys that a token reads, the mean over those of a sequence.
double keys_read(int64_t context, int64_t window) {
  const auto all = static_cast<double>(context), most = static_cast<double>(window);
  if (window == 0 || window >= context) return (all + 1) / 2;
  return (most * (most + 1) / 2 + (all - most) * most) / all;
}

// So many of all tokens pass a linear layer on average.
double share_of_tokens(const ModelShape& shape, const ParamSpec& spec) {
  if (spec.part != Part::kExpertUp && spec.part != Part::kExpertDown) return 1;
  const Experts& experts = base::at(shape.blocks, spec.segment - 1).mlp.experts;
  return static_cast<double>(experts.per_token) / static_cast<double>(experts.count);
}

}  // namespace

json to_config(const ModelShape& shape) {
  const Family& family = find_family(shape.family, "model family");
  const bool language_model = shape.head == Head::kLanguageModel;
  json config = {{"architectures", {language_model ? family.language_model_class : family.score_class}},
                 {"model_type", shape.family},
                 {"vocab_size", shape.vocabulary},
                 {"tie_word_embeddings", shape.tied_embeddings},
                 {"torch_dtype", "float32"}};
  family.add_config(shape, config);
  if (shape.eos_ids.size() == 1) config["eos_token_id"] = shape.eos_ids[0];
  if (shape.eos_ids.size() > 1) config["eos_token_id"] = shape.eos_ids;
  if (shape.bos_id >= 0) config["bos_token_id"] = shape.bos_id;
  if (shape.pad_id >= 0) config["pad_token_id"] = shape.pad_id;
  if (!language_model) {
    config["num_labels"] = 1;
    config["id2label"] = {{"0", "LABEL_0"}};
    config["label2id"] = {{"LABEL_0", 0}};
    config["collimate_head"] = head_name(shape.head);
  }
  return config;
}

double forward_flops(const ModelShape& shape, int64_t tokens, int64_t context) {
  double weights = 0, attention = 0;
  for (const ParamSpec& spec : param_specs(shape))
    if (is_linear(shape, spec)) weights += static_cast<double>(spec.count()) * share_of_tokens(shape, spec);
  for (const Block& block : shape.blocks)
    attention += static_cast<double>(block.attention.query_width() + block.attention.output_width()) *
                 keys_read(context, block.attention.window);
  return 2.0 * static_cast<double>(tokens) * (weights + attention);
}

}  // namespace collimate::shape
