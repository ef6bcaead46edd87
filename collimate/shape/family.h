#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/shape/fields.h"
#include "collimate/shape/model_shape.h"
#include "collimate/shape/param_spec.h"

namespace collimate::shape {

// A model family as its files have it; what it computes is in model/arch/.
struct Family {
  std::string name;                  // model_type of config.json
  std::string language_model_class;  // of "architectures"
  std::string score_class;
  // Reads all but head and token ids; InputError for what the family cannot be.
  ModelShape (*parse)(const Fields& fields, const std::string& family);
  // Contradictions that only this family can have: InputError naming `where`.
  void (*validate)(const ModelShape& shape, const std::string& where);
  // Adds the keys that parse reads.
  void (*add_config)(const ModelShape& shape, nlohmann::json& config);
  std::vector<ParamSpec> (*specs)(const ModelShape& shape);
};

std::vector<Family> llama_families();
std::vector<Family> gpt2_families();

// All of them by name.
const std::vector<Family>& families();
// InputError naming `where` and the known ones.
const Family& find_family(const std::string& name, const std::string& where);

}  // namespace collimate::shape
