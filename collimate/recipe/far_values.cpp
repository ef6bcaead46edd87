#include "collimate/recipe/far_values.h"

#include "collimate/base/error.h"
#include "collimate/recipe/list.h"

namespace collimate::recipe {
namespace {

using base::expectation;

constexpr double kFew = 1e-3;  // of the usual rate: steps that hardly change a weight

std::string shown(double rate) { return fmt::format("{:.2g}", rate); }

// Says how a model is trained, and by what its rate is judged.
struct Trained {
  const char* name;
  int64_t width;
  bool adapters;
  double usual, most;
  const char* whose;  // says whose rate `usual` is

  std::string text(const Config& config) const {
    return fmt::format("recipe {}{} and a {} of width {}", config.recipe.get(), adapters ? " with LoRA" : "", name,
                       width);
  }
};

bool trains_adapters(const Config& config, const char* role) { return config.model(role).lora.rank > 0; }

double of_width(double factor, bool adapters, int64_t width) {
  constexpr double kOfAdapters = 10;
  return factor * (adapters ? kOfAdapters : 1.0) / static_cast<double>(width);
}

constexpr double kOfSupervised = 4, kOfPolicies = 1;  // times 1 / width

void check_rate(const Config& config, const std::string& key, double rate, const Trained& model,
                std::vector<std::string>& found) {
  const std::string of = model.text(config), remedy = fmt::format("{}, {}", shown(model.usual), model.whose);
  if (rate > model.most)
    found.push_back(expectation(
        key, fmt::format("at most about {} for {}", shown(model.most), of),
        fmt::format("{}: an update of AdamW moves a weight by about as much (Kingma and Ba 2015), and a layer of the "
                    "model adds up {} of these moves (Yang et al. 2022), so that the run will probably diverge",
                    shown(rate), model.width),
        remedy));
  if (rate > 0 && rate < kFew * model.usual)
    found.push_back(expectation(key, fmt::format("at least about {} for {}", shown(kFew * model.usual), of),
                                fmt::format("{}: updates of that size hardly change the model", shown(rate)), remedy));
}

// A value model is new where its run begins, and learns like a model of supervised data.
Trained trained_value(const Config& config, int64_t width) {
  constexpr double kUsual = 1e-5;  // verl's
  const bool adapters = trains_adapters(config, "value");
  return {"value model", width, adapters, kUsual, of_width(kOfSupervised, adapters, width), "as verl has it"};
}

// Adds each limit that the config names itself and that is above the model's positions.
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

// By the rule of Yang et al. 2022 ("Tensor Programs V", table 8) rates of Adam fall with the width. The factors come
// from trials with models of width 32 to 128, and are above all published rates of large models (docs/decisions/0023).
// Recipes with a low rate of their own keep the policy near to where it began.
double most_rate(const Config& config, int64_t width) {
  constexpr double kLowRate = 1e-5;
  const double factor = find_recipe(config.recipe).learning_rate < kLowRate ? kOfPolicies : kOfSupervised;
  return of_width(factor, trains_adapters(config, "policy"), width);
}

std::vector<std::string> far_values(const Config& config, const shape::ModelShape& policy,
                                    const shape::ModelShape* value) {
  std::vector<std::string> found;
  check_rate(config, "train.learning_rate", config.train.learning_rate->value(),
             {"model", policy.hidden, trains_adapters(config, "policy"), usual_rate(config),
              most_rate(config, policy.hidden), "the recipe's own"},
             found);
  if (const double rate = config.train.value_learning_rate; value != nullptr && rate > 0)
    check_rate(config, "train.value_learning_rate", rate, trained_value(config, value->hidden), found);
  check_limits(config, policy.positions(), found);
  return found;
}

}  // namespace collimate::recipe
