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

recipe::Config config_for(const std::string& recipe, const std::string& plugin, const std::string& more) {
  const Scratch scratch("python-flow");
  const std::string path = scratch / "run.yaml";
  write_text(path, "recipe: " + recipe +
                       "\nmodels: {policy: {path: /nowhere}}\ntrain: {samples_per_update: 4}\n"
                       "reward: [{rule: exact}]\ndata: {train: rows.jsonl, eval: held_out.jsonl}\n" +
                       (plugin.empty() ? "" : "plugins: [" + plugin + "]\n") + more);
  return recipe::load(path, {});
}

std::string graph_text(const std::string& recipe, const std::string& plugin, const std::string& more) {
  graph::Graph graph = recipe::complete_plan(config_for(recipe, plugin, more), recipe::module_registry()).graph;
  graph.name = "grpo";
  return graph::text(graph);
}

// Writes a plugin with one flow `name`, of which `body` is the function's lines, and says what a plan of it gives.
std::string error_of_flow(const std::string& name, const std::string& body) {
  const Scratch scratch("python-flow-error");
  const std::string path = scratch / (name + ".py");
  write_text(path, "import collimate\n\n@collimate.flow(rows=\"prompts\")\ndef " + name + "(page, prompts):\n" + body);
  return base::message_of([&] { graph_text(name, path, ""); });
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
        "rollout: {kv_cache_dtype: int8}\n"})
    EXPECT_EQ(graph_text("my_grpo", plugin, more), graph_text("grpo", "", more)) << more;
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
  EXPECT_THAT(error_of_flow("refused", "    page.rewards(\"reward\")\n    page.trainer(\"t\", weight=\"policy\")\n"),
              HasSubstr("[a role] expected the words of, weights, trained and head, got \"weight\""));
  EXPECT_THAT(error_of_flow("raises", "    return 1 / 0\n"),
              AllOf(HasSubstr("raises.py] expected a plugin that Python can run, got ZeroDivisionError"),
                    HasSubstr("line 5, in raises"), HasSubstr("return 1 / 0")));
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
