#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/recipe/plugins.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/registry.h"
#include "tests/support/base/error_of.h"
#include "tests/support/small_task.h"

namespace collimate::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Sets = std::vector<std::string>;

recipe::Config config_for(const std::string& recipe, const std::string& plugin, const std::string& more,
                          const Sets& sets) {
  const Scratch scratch("python-flow");
  const std::string path = scratch / "run.yaml";
  write_text(path, "recipe: " + recipe +
                       "\nmodels: {policy: {path: /nowhere}}\ntrain: {samples_per_update: 4}\n"
                       "reward: [{rule: exact}]\ndata: {train: rows.jsonl, eval: held_out.jsonl}\n" +
                       (plugin.empty() ? "" : "plugins: [" + plugin + "]\n") + more);
  return recipe::load(path, sets);
}

recipe::Plan plan_of(const std::string& recipe, const std::string& plugin, const std::string& more,
                     const Sets& sets = {}) {
  return recipe::complete_plan(config_for(recipe, plugin, more, sets), recipe::module_registry());
}

std::string graph_text(const std::string& recipe, const std::string& plugin, const std::string& more) {
  graph::Graph graph = plan_of(recipe, plugin, more).graph;
  graph.name = "grpo";
  return graph::text(graph);
}

// Says of a plan what its graph does not: how data is read, and what is measured.
std::string described(const recipe::Plan& plan) {
  std::string text = fmt::format("margins {} prompt {} stop {} rows {} of {} trained {} samples {}\n", plan.margins,
                                 plan.prompt_is_trained, plan.learns_to_stop, plan.rows_per_iteration, plan.group_size,
                                 plan.trained, plan.samples_node);
  for (const graph::Input& input : plan.graph.inputs) text += nlohmann::json(input.columns).dump() + "\n";
  for (const std::string& option : plan.read_options) text += option + " ";
  for (const recipe::EvaluationPlan& evaluation : plan.evaluations)
    text += fmt::format("\nmeasured {} answers {} loss {} number {}\n{}", static_cast<int>(evaluation.measured),
                        evaluation.answers, evaluation.measures_loss,
                        evaluation.row_number ? evaluation.row_number->name : "", graph::text(evaluation.graph));
  return text;
}

// Twins of the recipes sft, dpo, reward and ppo.
constexpr const char* kTwins = R"(import collimate

@collimate.flow(rows="completions", losses=["completions"], learning_rate=2e-5)
def my_sft(page, examples):
    page.trainer("policy", weights="policy", rows="completions", loss="nll").train(examples, **page.updates())

@collimate.flow(rows="pairs", losses=["pairs"], learning_rate=2e-5)
def my_dpo(page, pairs):
    policy = page.trainer("policy", weights="policy", rows="pairs", loss="sigmoid")
    if page.reads_reference():
        pairs = page.scorer("reference", of="reference", weights="reference")("log_probs", pairs)
    policy.train(pairs, **page.updates())

@collimate.flow(rows="pairs", losses=["scored pairs"], learning_rate=2e-5)
def my_reward(page, pairs):
    model = page.trainer("policy", weights="policy", head="score", rows="scored pairs", loss="bradley_terry")
    model.train(pairs, **page.updates())

@collimate.flow(rows="prompts", losses=["rollouts", "values"])
def my_ppo(page, prompts):
    policy = page.generator("policy", weights="policy", trained=True)
    trainer = page.trainer("policy_trainer", weights="policy", rows="rollouts", loss="ppo")
    reference = page.scorer("reference", of="reference", weights="reference")
    value = page.trainer("value", of="value", weights="value", head="value", rows="values", loss="value")
    rules = page.config["reward"] is not None
    reward = page.rewards("reward") if rules else page.scorer("reward", of="reward", weights="reward", head="score")
    gae = page.advantages("values", default="gae")
    samples = page.samples(policy, prompts)
    read = reference("log_probs", samples)
    values = value("values", samples)
    rows = gae(collimate.merge(read, values, reward("score", samples)))
    trainer.train(rows, **page.updates())
    value.train(rows, **page.updates())
    collimate.link(trainer, policy)
)";

class PythonTwins : public testing::Test {
 protected:
  PythonTwins() : scratch_("python-twins") { write_text(scratch_ / "twins.py", kTwins); }
  void expect_equal(const std::string& recipe, const Sets& sets) {
    recipe::Plan cpp = plan_of(recipe, "", "", sets), python = plan_of("my_" + recipe, scratch_ / "twins.py", "", sets);
    python.graph.name = cpp.graph.name;
    EXPECT_EQ(graph::text(python.graph), graph::text(cpp.graph)) << recipe << " " << sets.back();
    EXPECT_EQ(described(python), described(cpp)) << recipe << " " << sets.back();
  }
  const Scratch scratch_;
};

// Writes a plugin with one flow `name`, of which `body` is the function's lines, and says what a plan of it gives.
std::string error_of_flow(const std::string& name, const std::string& body, const std::string& more = "") {
  const Scratch scratch("python-flow-error");
  const std::string path = scratch / (name + ".py");
  write_text(path, "import collimate\n\n@collimate.flow(rows=\"prompts\")\ndef " + name + "(page, prompts):\n" + body);
  return base::message_of([&] { graph_text(name, path, more); });
}

const std::string kModels =
    "    policy = page.generator(\"policy\", weights=\"policy\", trained=True)\n"
    "    trainer = page.trainer(\"policy_trainer\", weights=\"policy\")\n"
    "    reward, advantages = page.rewards(\"reward\"), page.advantages()\n";

// Python's tracer writes the text that C++'s writes, for each way that GRPO's page may go.
TEST(PythonFlow, IsTheGraphOfTheRecipeInCpp) {
  const std::string plugin = COLLIMATE_SOURCE_DIR "/examples/grpo_flow.py";
  for (const char* more :
       {"", "algorithm: {beta: 0.04}\n", "algorithm: {advantage: rloo}\n", "algorithm: {advantage: remax}\n",
        "rollout: {replace_equal_groups: true}\n", "rollout: {replace_equal_groups: true}\nalgorithm: {beta: 0.04}\n",
        "rollout: {kv_cache_dtype: int8}\n", "rollout: {round_shares: [0.5, 0.5], round_min_samples: 2}\n"})
    EXPECT_EQ(graph_text("my_grpo", plugin, more), graph_text("grpo", "", more)) << more;
}

TEST_F(PythonTwins, ReadDataAndMeasureAsTheRecipesInCpp) {
  const std::string none = "reward=null";
  expect_equal("sft", {none});
  for (const char* set : {"algorithm.beta=0.5", "algorithm.loss_type=orpo", "algorithm.loss_type=simpo",
                          "data.train_from_difference=true"})
    expect_equal("dpo", {none, set});
  expect_equal("reward", {none});
  expect_equal("ppo", {"algorithm.beta=0.1"});
  expect_equal("ppo", {none, "models.reward.path=/nowhere"});
}

// The node that is trained on last may not be the one of the samples.
TEST(PythonFlow, SamplesAreTheRowsThatHaveRewards) {
  const Scratch scratch("python-flow-samples");
  write_text(scratch / "merged.py",
             "import collimate\n\n@collimate.flow(rows=\"prompts\")\n"
             "def merged(page, prompts):\n" +
                 kModels +
                 "    reference = page.scorer(\"reference\", of=\"reference\", weights=\"r\")\n"
                 "    samples = page.samples(policy, prompts)\n"
                 "    scored = advantages(reward(\"score\", samples))\n"
                 "    read = reference(\"log_probs\", samples)\n"
                 "    trainer.train(collimate.merge(scored, read), **page.updates())\n");
  EXPECT_EQ(plan_of("merged", scratch / "merged.py", "").samples_node, "advantages");
}

// A value model that is made last does not hide what the policy's loss reads.
TEST(PythonFlow, ReadsTheReferenceOfEveryTrainer) {
  const std::string body =
      kModels +
      "    page.trainer(\"value\", of=\"value\", weights=\"value\", head=\"value\", rows=\"values\", loss=\"value\")\n"
      "    raise ValueError(page.reads_reference())\n";
  EXPECT_THAT(error_of_flow("reading", body, "algorithm: {beta: 0.04}\n"), HasSubstr("ValueError: True"));
  EXPECT_THAT(error_of_flow("unread", body), HasSubstr("ValueError: False"));
}

TEST(PythonFlow, AFlowThatCatchesEverythingIsStopped) {
  const std::string caught =
      "    for _ in range(3):\n        try:\n            page.trainer(\"t\", weight=\"policy\")\n"
      "        except BaseException:\n            pass\n";
  const Scratch scratch("python-flow-caught");
  write_text(scratch / "caught.py",
             "import collimate\n\n@collimate.flow(rows=\"prompts\")\n"
             "def caught(page, prompts):\n" +
                 caught);
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(base::message_of([&] { graph_text("caught", scratch / "caught.py", ""); }),
                HasSubstr("[a role] expected the words of, weights, trained and head, and of a trainer rows and loss, "
                          "got \"weight\""))
        << i;
}

TEST(PythonFlow, MistakesAreToldBeforeAnyWorkerExists) {
  EXPECT_THAT(error_of_flow("unknown", kModels + "    policy(\"genrate\", prompts)\n"),
              AllOf(HasSubstr("[flow unknown] expected a function of policy out of generate, log_probs, "),
                    HasSubstr("got \"genrate\"; try \"generate\"")));
  EXPECT_THAT(
      error_of_flow("unused",
                    kModels + "    samples = policy(\"generate\", prompts)\n    scored = reward(samples)\n"
                              "    page.scorer(\"judge\", weights=\"policy\", trained=True)(\"log_probs\", samples)\n"
                              "    trainer.train(advantages(scored), **page.updates())\n"),
      HasSubstr("[recipe unused] expected a node that reads what judge.log_probs makes"));
  EXPECT_THAT(error_of_flow("missing", kModels + "    samples = policy(\"generate\", prompts)\n    reward(samples)\n"
                                                 "    trainer.train(advantages(samples), **page.updates())\n"),
              AllOf(HasSubstr("[graph.advantages] expected column 'reward' from its inputs policy.generate"),
                    HasSubstr("try giving it the output of node reward.score")));
  EXPECT_THAT(error_of_flow("idle", kModels + "    policy(\"generate\", prompts)\n"),
              HasSubstr("[flow idle] expected a call that trains, got none"));
  EXPECT_THAT(
      error_of_flow("refused", "    page.rewards(\"reward\")\n    page.trainer(\"t\", weight=\"policy\")\n"),
      HasSubstr(
          "[a role] expected the words of, weights, trained and head, and of a trainer rows and loss, got \"weight\""));
  EXPECT_THAT(error_of_flow("kinds", "    page.trainer(\"t\", weights=3)\n"),
              HasSubstr("[a role] expected weights to be a text, got 3"));
  EXPECT_THAT(error_of_flow("number", "    page.rewards(3)\n"),
              HasSubstr("[flow number] expected arguments of the kinds that the calls of a page have, got {"));
  EXPECT_THAT(
      error_of_flow("twice",
                    "    page.generator(\"policy\", weights=\"a\")\n    page.generator(\"policy\", weights=\"b\")\n"),
      HasSubstr("[recipe twice] expected a name of its own for each model, got \"policy\" again"));
  EXPECT_THAT(error_of_flow("unjudged", kModels + "    samples = policy(\"generate\", prompts)\n"
                                                  "    trainer.train(reward(advantages(samples)))\n"),
              HasSubstr("[graph.advantages] expected column 'reward'"));
  EXPECT_THAT(error_of_flow("raises", "    return 1 / 0\n"),
              AllOf(HasSubstr("raises.py] expected a plugin that Python can run, got ZeroDivisionError"),
                    HasSubstr("line 5, in raises"), HasSubstr("return 1 / 0")));
}

// One that fails while it registers stays failed, whatever it has thrown.
TEST(PythonFlow, DecoratorsCheckTheirArguments) {
  const auto error = [](const std::string& name, const std::string& decorator) {
    const Scratch scratch("python-flow-decorators");
    const std::string path = scratch / (name + ".py");
    write_text(path, "import collimate\n\n" + decorator + "\ndef " + name + "(page, prompts):\n    pass\n");
    const std::string first = base::message_of([&] { graph_text(name, path, ""); });
    EXPECT_EQ(base::message_of([&] { graph_text(name, path, ""); }), first);
    return first;
  };
  EXPECT_THAT(error("rate", "@collimate.flow(learning_rate=\"1e-6\")"),
              HasSubstr("[collimate.flow] expected learning_rate to be a number, got '1e-6'"));
  EXPECT_THAT(error("named", "@collimate.flow(name=3)"), HasSubstr("expected name to be a text, got 3"));
  EXPECT_THAT(error("losses", "@collimate.flow(losses=\"pairs\")"),
              HasSubstr("expected losses to be a list of texts, got 'pairs'; try losses=[\"pairs\"]"));
}

TEST(PythonFlow, AFileThatCannotBeImportedSaysWhere) {
  const Scratch scratch("python-flow-import");
  const std::string path = scratch / "broken.py";
  write_text(path, "import collimate\nimport no_such_module\n");
  const std::string error = base::message_of([&] { graph_text("grpo", path, ""); });
  EXPECT_THAT(error, AllOf(HasSubstr("broken.py] expected a plugin that Python can run, got ModuleNotFoundError"),
                           HasSubstr("line 2")));
  EXPECT_EQ(base::message_of([&] { graph_text("grpo", path, ""); }), error) << "a plugin that has failed stays so";
  write_text(path, "import collimate\n");
  EXPECT_THAT(base::message_of([&] { graph_text("grpo", path, ""); }),
              HasSubstr("broken.py as this process has loaded it, got another file since; try a new process"));
}

}  // namespace
}  // namespace collimate::test
