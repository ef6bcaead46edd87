#include "collimate/recipe/shared_base.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "collimate/base/config.h"
#include "collimate/host/base_model.h"
#include "collimate/rlhf/modules/decoder.h"

namespace collimate::recipe {
namespace {

// Models of which these agree compute alike from one copy of the weights.
using BaseKey = std::tuple<std::string, std::string, int64_t>;  // path, compute, chunks

struct Identity {
  std::string name;  // of its weights
  std::string head;
};

// Returns whether some of a model's weights stay as its directory has them, in every run of its graph.
bool keeps_some(const rlhf::DecoderOptions& options) {
  if (options.path->empty() || options.from_scratch || host::holds_adapters(options.path)) return false;
  return !options.trained || options.lora.rank > 0;
}

BaseKey key_of(const rlhf::DecoderOptions& options) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path path = fs::weakly_canonical(fs::path(options.path.get()) / "", ignored);
  return {path.empty() ? options.path.get() : path.string(), options.compute, options.reduction_chunks};
}

std::string name_of(const std::vector<Identity>& models) {
  std::string name;
  for (const Identity& model : models) name += (name.empty() ? "" : "+") + model.name;
  return name;
}

}  // namespace

void share_bases(Plan& plan) {
  std::map<BaseKey, std::vector<Identity>> bases;
  std::set<std::string> known, changed;  // identities of weights; changed: those of which nothing stays
  for (const auto& [model, module] : plan.modules) {
    if (!module.parameters.contains("weights")) continue;
    rlhf::DecoderOptions options;
    base::apply(module.parameters, "models", options);
    const std::string& weights = options.weights;
    if (!keeps_some(options)) changed.insert(weights);
    if (known.insert(weights).second) bases[key_of(options)].push_back({weights, options.head});
  }
  for (auto& [key, models] : bases) {
    std::erase_if(models, [&](const Identity& model) { return changed.contains(model.name); });
    if (models.size() < 2) continue;
    const bool speaks = std::ranges::any_of(models, [](const Identity& model) { return model.head == "lm"; });
    for (auto& [name, module] : plan.modules) {
      const std::string weights = module.parameters.value("weights", "");
      if (std::ranges::find(models, weights, &Identity::name) == models.end()) continue;
      module.parameters["base"] = name_of(models);
      module.parameters["base_head"] = speaks ? "lm" : models.front().head;
    }
  }
}

}  // namespace collimate::recipe
