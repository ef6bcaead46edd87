#include "collimate/shape/family.h"

namespace collimate::shape {

using nlohmann::json;

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

}  // namespace collimate::shape
