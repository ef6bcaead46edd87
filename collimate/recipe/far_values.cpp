#include "collimate/recipe/far_values.h"

#include "collimate/base/error.h"
#include "collimate/recipe/list.h"

namespace collimate::recipe {
namespace {

using base::expectation;

constexpr double kFew = 1e-3;  // of the recipe's own rate: steps that hardly change a weight

std::string shown(double rate) { return fmt::format("{:.2g}", rate); }

bool trains_adapters(const Config& config) { return config.model("policy").lora.rank > 0; }

void check_rate(const Config& config, const std::string& key, double rate, int64_t width,
                std::vector<std::string>& found) {
  const double usual = usual_rate(config), most = most_rate(config, width);
  const std::string of = fmt::format("recipe {}{} and a model of width {}", config.recipe.get(),
                                     trains_adapters(config) ? " with LoRA" : "", width);
  const std::string remedy = fmt::format("{}, the recipe's own", shown(usual));
  if (rate > most)
    found.push_back(expectation(
        key, fmt::format("at most about {} for {}", shown(most), of),
        fmt::format("{}: an update of AdamW moves a weight by about as much (Kingma and Ba 2015), and a layer of the "
                    "model adds up {} of these moves (Yang et al. 2022), so that the run will probably diverge",
                    shown(rate), width),
        remedy));
  if (rate > 0 && rate < kFew * usual)
    found.push_back(expectation(key, fmt::format("at least about {} for {}", shown(kFew * usual), of),
                                fmt::format("{}: updates of that size hardly change the model", shown(rate)), remedy));
}

// A limit that the config names itself and that the model's positions undercut.
void check_limits(const Config& config, int64_t positions, std::vector<std::string>& found) {
  const std::string path = config.model("policy").path;
  const bool drawn = find_recipe(config.recipe).rows == rlhf::RowKind::kPrompt;
  if (const auto& tokens = config.data.max_tokens; !tokens.where().empty() && tokens > positions)
    found.push_back(expectation(
        "data.max_tokens", fmt::format("at most the {} positions of {}", positions, path),
        fmt::format("{}: the model's number wins, and a longer row ends the run before it begins", tokens.get()),
        fmt::format("data.max_tokens: {}", positions)));
  const auto& prompt = config.rollout.prompt_tokens;
  const int64_t completion = config.rollout.completion_tokens, room = positions - completion;
  if (drawn && !prompt.where().empty() && prompt > room && room > 0)
    found.push_back(expectation(
        "rollout.prompt_tokens",
        fmt::format("at most {}, what rollout.completion_tokens: {} leaves of the {} positions of {}", room, completion,
                    positions, path),
        fmt::format("{}: the model's number wins, and a longer prompt ends the run before it begins", prompt.get()),
        fmt::format("rollout.prompt_tokens: {}", room)));
}

}  // namespace

// By the rule of Yang et al. 2022 ("Tensor Programs V", table 8) rates of Adam fall with the width. The factors are of
// trials with models of width 32 to 128; they are above all published rates of large models (docs/decisions/0023).
// Recipes with a low rate of their own keep the policy near to where it began.
double most_rate(const Config& config, int64_t width) {
  constexpr double kOfSupervised = 4, kOfPolicies = 1, kOfAdapters = 10, kLowRate = 1e-5;
  const double factor = find_recipe(config.recipe).learning_rate < kLowRate ? kOfPolicies : kOfSupervised;
  return factor * (trains_adapters(config) ? kOfAdapters : 1.0) / static_cast<double>(width);
}

std::vector<std::string> far_values(const Config& config, const shape::ModelShape& policy) {
  std::vector<std::string> found;
  check_rate(config, "train.learning_rate", config.train.learning_rate->value(), policy.hidden, found);
  if (config.train.value_learning_rate > 0)
    check_rate(config, "train.value_learning_rate", config.train.value_learning_rate, policy.hidden, found);
  check_limits(config, policy.positions(), found);
  return found;
}

}  // namespace collimate::recipe
