// The recipe `novelty`: GRPO in which an answer that was often given before, by the counts of a module, is worth less.
#include <map>

#include "collimate/collimate.h"

namespace {
using namespace collimate;

class Novelty final : public Module {
 public:
  explicit Novelty(const nlohmann::json& parameters) : weight_(parameters.at("weight")) {}
  std::vector<FunctionSpec> functions() const override {
    const Granularity whole = Granularity::kIteration;  // all rows of an iteration at once, in their order
    return {{.name = "score", .needs = {"uid", "ids", "reward"}, .makes = {"reward"}, .granularity = whole}};
  }
  void setup(Context&) override {}
  Batch call(const std::string&, const Batch& rows, const CallInfo&) override {
    std::vector<float> rewards = rows.all(batch::kReward);
    for (size_t r = 0; r < rewards.size(); ++r) {
      const auto ids = rows.row(batch::kIds, static_cast<int64_t>(r));
      rewards[r] = static_cast<float>(rewards[r] - weight_ * seen_[{ids.begin(), ids.end()}]++);
    }
    Batch scored = rows;
    scored.set(batch::kReward, rewards);
    return scored;
  }
  std::vector<Metric> metrics() override { return {{"novelty/answers", static_cast<double>(seen_.size())}}; }
  void save(StateWriter& out) const override { out.json("seen", seen_); }
  void load(StateReader& in) override { in.json("seen").get_to(seen_); }

 private:
  const double weight_;
  std::map<std::vector<int32_t>, int> seen_;
};
Plan novelty(const Config& config, const Registry& registry) {
  Page page(config, registry);
  const auto policy = page.generator("policy", {.weights = "policy", .trained = true});
  const Page::Role trained{.weights = "policy", .trained = true, .rows = "rollouts", .loss = "grpo"};
  const auto trainer = page.trainer("policy_trainer", trained);
  const auto reward = page.rewards("reward", config.reward);
  const auto counts = page.model("counts", "novelty", {{"weight", config.options->at("weight")}});
  const auto advantages = page.advantages("groups", "group");
  Plan plan = rollout_plan(config);
  const auto iteration = [&](Value prompts) {
    trainer.train(advantages(counts("score", reward("score", page.samples(policy, prompts)))), page.updates());
    link(trainer, policy);
  };
  plan.graph = trace(iteration, {page.prompts()}, "novelty");
  const auto measure = [&](const AskedMeasure& asked) { return completion_evaluation(page, asked, policy); };
  plan.evaluations = evaluations(page, trainer, {MeasureKind::kCompletions, measure});
  return page.finish(std::move(plan));
}
const char* const kSummary = "a policy on prompts with rewards, less for answers that it has often given";
}  // namespace

COLLIMATE_PLUGIN {
  register_module<Novelty>("novelty");
  register_recipe({"novelty", kSummary, RowKind::kPrompt, {"rollouts"}, 1e-6, novelty, {{"weight", 0.1}}});
}
