#include "collimate/base/error.h"
#include "collimate/model/arch/architecture.h"

namespace collimate::model {

const std::map<std::string, MakeArchitecture>& architectures() {
  static const std::map<std::string, MakeArchitecture> kFamilies = {
      {"gpt2", make_gpt2},
      {"llama", make_llama},
      {"mistral", make_llama},
      {"qwen2", make_llama},
  };
  return kFamilies;
}

std::unique_ptr<Architecture> make_architecture(const Weights& weights) {
  const auto found = architectures().find(weights.shape().family);
  if (found != architectures().end()) return found->second(weights);
  std::string known;
  for (const auto& [name, make] : architectures()) known += (known.empty() ? "" : ", ") + name;
  throw base::InputError(base::expectation("model family", "one of " + known, "'" + weights.shape().family + "'"));
}

}  // namespace collimate::model
