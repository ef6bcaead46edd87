#include "collimate/recipe/python_plugin.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/recipe/evaluation/graphs.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/python_loss.h"
#include "collimate/recipe/python_module.h"
#include "collimate/recipe/python_process.h"

namespace collimate::recipe {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;

Page::Role role_of(const json& given) {
  Page::Role role;
  for (const auto& [key, value] : given.items()) {
    std::string* text = key == "of"        ? &role.of
                        : key == "weights" ? &role.weights
                        : key == "head"    ? &role.head
                        : key == "rows"    ? &role.rows
                        : key == "loss"    ? &role.loss
                                           : nullptr;
    if (text == nullptr && key != "trained")
      throw InputError(expectation("a role", "the words of, weights, trained and head, and of a trainer rows and loss",
                                   "\"" + key + "\""));
    if (text == nullptr ? !value.is_boolean() : !value.is_string())
      throw InputError(
          expectation("a role", key + (text == nullptr ? " to be True or False" : " to be a text"), value.dump()));
    if (text == nullptr)
      role.trained = value;
    else
      *text = value;
  }
  return role;
}

// Holds the page of one trace, and answers what the flow asks for.
class TracedPage {
 public:
  TracedPage(const RecipeEntry& entry, const Config& config, const flow::Registry& registry)
      : entry_(entry), config_(config), page_(config, registry) {}

  json answer(const json& asked) {
    try {
      return answer_of(asked);
    } catch (const json::exception& error) {
      throw InputError(expectation("flow " + entry_.name, "arguments of the kinds that the calls of a page have",
                                   asked.dump() + " (" + error.what() + ")"));
    }
  }

  Plan finish(const json& traced) {
    const Decoder* trained = trainer_of(traced.at("trained"));
    Plan plan = plan_of_rows(trained);
    if (entry_.rows == rlhf::RowKind::kPrompt) plan.samples_node = traced.at("samples");
    plan.trained = traced.at("trained");
    const std::string text = traced.at("graph");
    plan.graph = graph::parse(text);
    COLLIMATE_CHECK(graph::text(plan.graph) == text, "a flow in Python was traced to a text of another form: {}", text);
    if (trained != nullptr) {
      const graph::ModelHandle* judge = judge_in(plan);
      plan.evaluations = evaluations(page_, trained->handle, own_measure(*trained, plan, judge), judge);
    }
    return page_.finish(std::move(plan));
  }

 private:
  struct Decoder {
    graph::ModelHandle handle;
    Page::Role role;
  };

  json answer_of(const json& asked) {
    const std::string what = asked.at("page"), name = asked.value("model", "");
    if (what == "reads_reference") return reads_reference();
    if (what == "rounds_cache") return config_.rollout.kv_cache_dtype.type().has_value();
    if (what == "input") return input(trainer_of(name));
    if (what == "mixed_groups") {
      const auto filter = page_.mixed_groups();
      return filter ? json(filter->functions()) : json();
    }
    if (what == "finished_samples") {
      const auto filter = page_.finished_samples();
      return filter ? json(filter->functions()) : json();
    }
    return model(what, name, asked).functions();
  }

  graph::ModelHandle model(const std::string& what, const std::string& name, const json& asked) {
    if (what == "rewards") return page_.rewards(name, config_.reward);
    if (what == "module") return page_.model(name, asked.at("kind"), asked.at("parameters"));
    if (what == "advantages") {
      advantages_.emplace_back(asked.at("rows"), asked.at("default"));
      return page_.advantages(advantages_.back().first, advantages_.back().second);
    }
    const Page::Role role = role_of(asked.at("role"));
    if (what == "scorer") {
      scorers_.push_back({page_.scorer(name, role), role});
      return scorers_.back().handle;
    }
    if (what == "generator") {
      const graph::ModelHandle made = page_.generator(name, role);
      if (role.trained && !generator_) generator_ = made;
      return made;
    }
    trainers_.push_back({page_.trainer(name, role), role});
    return trainers_.back().handle;
  }

  // Returns the trainer of that name, else the first one; null without any.
  const Decoder* trainer_of(const std::string& name) const {
    const auto found =
        std::ranges::find_if(trainers_, [&](const Decoder& trainer) { return trainer.handle.name() == name; });
    return found != trainers_.end() ? &*found : trainers_.empty() ? nullptr : &trainers_.front();
  }

  bool reads_reference() {
    page_.may_read("reference");
    return std::ranges::any_of(
               trainers_,
               [&](const Decoder& trainer) { return page_.loss(trainer.role).reads(batch::kReferenceLogProbs); }) ||
           std::ranges::any_of(advantages_, [&](const auto& advantages) {
             return page_.advantages_read_reference(advantages.first, advantages.second);
           });
  }
  graph::Input input(const Decoder* trainer) const {
    if (entry_.rows == rlhf::RowKind::kPrompt) return page_.prompts();
    return entry_.rows == rlhf::RowKind::kPreference && trainer != nullptr ? pair_input(page_.loss(trainer->role))
                                                                           : completion_input();
  }

  Plan plan_of_rows(const Decoder* trained) {
    if (entry_.rows == rlhf::RowKind::kPrompt) return rollout_plan(config_);
    if (entry_.rows == rlhf::RowKind::kPreference && trained != nullptr) return pair_plan(page_, trained->role);
    Plan plan;
    plan.rows_per_iteration = config_.train.samples_per_update;
    plan.learns_to_stop = trained == nullptr || trained->role.head == "lm";
    return plan;
  }

  // Returns a frozen scorer that the graph calls; null without one.
  const graph::ModelHandle* scorer_in(const Plan& plan, const std::string& function) const {
    const auto found = std::ranges::find_if(scorers_, [&](const Decoder& scorer) {
      return !scorer.role.trained && plan.calls(scorer.handle.name(), function);
    });
    return found == scorers_.end() ? nullptr : &found->handle;
  }
  // Returns the reward model of a flow without rules; null without one.
  const graph::ModelHandle* judge_in(const Plan& plan) const {
    return generator_ && config_.reward->is_null() ? scorer_in(plan, "score") : nullptr;
  }

  OwnMeasure own_measure(const Decoder& trained, const Plan& plan, const graph::ModelHandle* judge) {
    if (generator_)
      return {MeasureKind::kCompletions, [this, judge](const AskedMeasure& asked) {
                return completion_evaluation(page_, asked, *generator_, judge);
              }};
    if (entry_.rows != rlhf::RowKind::kPreference)
      return {MeasureKind::kPerplexity,
              [&trained](const AskedMeasure&) { return loss_evaluation(trained.handle, Answers::kOfAskedRows); }};
    if (trained.role.head == "score")
      return {MeasureKind::kPairs, [&trained](const AskedMeasure&) { return pair_score_evaluation(trained.handle); },
              false};
    const bool compares = page_.loss(trained.role).reads(batch::kReferenceLogProbs);
    const graph::ModelHandle* reference = compares ? scorer_in(plan, "log_probs") : nullptr;
    const double beta = config_.algorithm.beta->value_or(rlhf::kPairBeta);
    return {MeasureKind::kPairs, [&trained, reference, beta](const AskedMeasure& asked) {
              return reference == nullptr
                         ? pair_log_prob_evaluation(trained.handle, Answers::kOfAskedRows)
                         : implicit_reward_evaluation(asked, trained.handle, *reference, beta, Answers::kOfAskedRows);
            }};
  }

  const RecipeEntry& entry_;
  const Config& config_;
  Page page_;
  std::vector<Decoder> trainers_, scorers_;                      // in the order in which the flow made them
  std::optional<graph::ModelHandle> generator_;                  // the first that is trained
  std::vector<std::pair<std::string, std::string>> advantages_;  // rows and default of each
};

// Returns what the process answers. Where it does not answer, throws InputError and not RunError, as no run has begun.
json asked_before_a_run(PythonProcess& process, const json& question) {
  try {
    process.revive();
    return process.ask(question).header;
  } catch (const base::RunError& error) {
    throw InputError(error.what());
  }
}

Plan traced_plan(PythonProcess& plugin, const Config& config, const flow::Registry& registry) {
  const std::lock_guard turn(plugin.turn());
  const RecipeEntry& entry = find_recipe(config.recipe);
  TracedPage page(entry, config, registry);
  json message = asked_before_a_run(plugin, {{"flow", entry.name}, {"config", base::to_json(config.section_value())}});
  while (message.contains("page")) {
    json value;
    try {
      value = page.answer(message);
    } catch (...) {
      plugin.stop();
      throw;
    }
    message = asked_before_a_run(plugin, {{"value", std::move(value)}});
  }
  return page.finish(message);
}

rlhf::RowKind rows_named(const std::string& rows) {
  if (rows == "prompts") return rlhf::RowKind::kPrompt;
  return rows == "pairs" ? rlhf::RowKind::kPreference : rlhf::RowKind::kDemonstration;
}

}  // namespace

void load_python_plugin(const std::string& path, uint32_t crc) {
  const auto plugin = std::make_shared<PythonProcess>(path, crc);
  const json& told = plugin->told();
  for (const json& flow : told.at("flows"))
    register_recipe(
        {.name = flow.at("name"),
         .summary = flow.at("summary"),
         .rows = rows_named(flow.at("rows")),
         .loss_rows = flow.at("loss_rows"),
         .learning_rate = flow.at("learning_rate"),
         .make = [plugin](const Config& config,
                          const flow::Registry& registry) { return traced_plan(*plugin, config, registry); },
         .options = flow.at("options")});
  for (const json& loss : told.at("losses")) register_python_loss(plugin, loss);
  for (const json& module : told.at("modules")) register_python_module(path, crc, module);
}

}  // namespace collimate::recipe
