#include <map>

#include "collimate/base/error.h"
#include "collimate/model/arch/architecture.h"

namespace collimate::model {

std::unique_ptr<Architecture> make_architecture(const Weights& weights) {
  using Make = std::unique_ptr<Architecture> (*)(const Weights&);
  static const std::map<std::string, Make> kFamilies = {
      {"gpt2", make_gpt2},
      {"llama", make_llama},
      {"mistral", make_llama},
      {"qwen2", make_llama},
  };
  const auto found = kFamilies.find(weights.shape().family);
  if (found != kFamilies.end()) return found->second(weights);
  std::string known;
  for (const auto& [name, make] : kFamilies) known += (known.empty() ? "" : ", ") + name;
  throw base::InputError(base::expectation("model family", "one of " + known, "'" + weights.shape().family + "'"));
}

}  // namespace collimate::model
