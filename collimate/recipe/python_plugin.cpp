#include "collimate/recipe/python_plugin.h"

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

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
    if (key == "trained")
      role.trained = value;
    else if (std::string* text = key == "of"        ? &role.of
                                 : key == "weights" ? &role.weights
                                 : key == "head"    ? &role.head
                                 : key == "rows"    ? &role.rows
                                 : key == "loss"    ? &role.loss
                                                    : nullptr)
      *text = value;
    else
      throw InputError(expectation("a role", "the words of, weights, trained and head", "\"" + key + "\""));
  }
  return role;
}

// The page of one trace: answers what the flow asks for.
class TracedPage {
 public:
  TracedPage(const RecipeEntry& entry, const Config& config, const flow::Registry& registry)
      : entry_(entry), config_(config), page_(config, registry) {}

  json answer(const json& asked) {
    const std::string what = asked.at("page"), name = asked.value("model", "");
    if (what == "reads_reference") return reads_reference();
    if (what == "rounds_cache") return config_.rollout.kv_cache_dtype.type().has_value();
    if (what == "input") return input();
    if (what == "mixed_groups") {
      const auto filter = page_.mixed_groups();
      return filter ? json(filter->functions()) : json();
    }
    return model(what, name, asked).functions();
  }

  Plan finish(const json& traced) {
    Plan plan = entry_.rows == rlhf::RowKind::kPrompt ? rollout_plan(config_) : Plan();
    if (entry_.rows != rlhf::RowKind::kPrompt) plan.rows_per_iteration = config_.train.samples_per_update;
    if (entry_.rows == rlhf::RowKind::kPreference) plan.group_size = 2;
    if (entry_.rows == rlhf::RowKind::kPrompt) plan.samples_node = traced.at("samples");
    plan.trained = traced.at("trained");
    const std::string text = traced.at("graph");
    plan.graph = graph::parse(text);
    COLLIMATE_CHECK(graph::text(plan.graph) == text, "a flow in Python was traced to a text of another form: {}", text);
    if (trainer_) plan.evaluations = evaluations(page_, *trainer_, own_measure());
    return page_.finish(std::move(plan));
  }

 private:
  graph::ModelHandle model(const std::string& what, const std::string& name, const json& asked) {
    if (what == "rewards") return page_.rewards(name, config_.reward);
    if (what == "module") return page_.model(name, asked.at("kind"), asked.at("parameters"));
    if (what == "advantages") {
      advantages_ = {asked.at("rows"), asked.at("default")};
      return page_.advantages(advantages_->first, advantages_->second);
    }
    const Page::Role role = role_of(asked.at("role"));
    if (what == "scorer") return page_.scorer(name, role);
    if (what == "generator") {
      const graph::ModelHandle made = page_.generator(name, role);
      if (role.trained && !generator_) generator_ = made;
      return made;
    }
    trained_ = role;
    const graph::ModelHandle made = page_.trainer(name, role);
    if (!trainer_) trainer_ = made;
    return made;
  }

  bool reads_reference() {
    page_.may_read("reference");
    const bool loss = trained_ && page_.loss(*trained_).reads(batch::kReferenceLogProbs);
    return loss || (advantages_ && page_.advantages_read_reference(advantages_->first, advantages_->second));
  }
  graph::Input input() const {
    if (entry_.rows == rlhf::RowKind::kPrompt) return page_.prompts();
    return entry_.rows == rlhf::RowKind::kPreference && trained_ ? pair_input(page_.loss(*trained_))
                                                                 : completion_input();
  }
  OwnMeasure own_measure() {
    if (generator_)
      return {MeasureKind::kCompletions,
              [this](const AskedMeasure& asked) { return completion_evaluation(page_, asked, *generator_); }};
    if (entry_.rows == rlhf::RowKind::kPreference)
      return {MeasureKind::kPairs, [this](const AskedMeasure&) { return pair_log_prob_evaluation(*trainer_); }};
    return {MeasureKind::kPerplexity, [this](const AskedMeasure&) { return loss_evaluation(*trainer_); }};
  }

  const RecipeEntry& entry_;
  const Config& config_;
  Page page_;
  std::optional<Page::Role> trained_;
  std::optional<graph::ModelHandle> generator_, trainer_;  // the first that is trained
  std::optional<std::pair<std::string, std::string>> advantages_;
};

// Gives what the process answers, also in words of the input where it does not answer at all: no run has begun.
json asked_before_a_run(PythonProcess& process, const json& question) {
  try {
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

void load_python_plugin(const std::string& path) {
  const auto plugin = std::make_shared<PythonProcess>(path);
  const json told = asked_before_a_run(*plugin, {{"hello", 1}});
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
  for (const json& module : told.at("modules")) register_python_module(path, module);
}

}  // namespace collimate::recipe
