#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/deadline.h"
#include "tests/e2e/run_support.h"
#include "tests/support/host/run_command.h"

namespace collimate::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kProgram = COLLIMATE_BIN_DIR "/collimate";
constexpr const char* kOwnProgram = COLLIMATE_BIN_DIR "/own_flow";
constexpr const char* kPlugin = COLLIMATE_BIN_DIR "/own_flow.so";

host::CommandResult run_words(std::vector<std::string> words) {
  return host::run_command({.command = std::move(words)}, "", base::Deadline::after(120));
}

// The recipe of examples/own_flow, in `collimate` by its plugin and in a program of its own.
class OwnFlow : public OnSmallTask {
 protected:
  OwnFlow() : OnSmallTask("own-flow") {}

  // A config of three iterations of the small task by that recipe, whose file names `plugins`.
  std::string config(const std::string& plugins) const {
    std::string text = small_config("grpo", scratch_.path());
    text.replace(text.find("grpo"), 4, "novelty");
    const std::string path = scratch_ / "run.yaml";
    write_text(path, text + (plugins.empty() ? "" : "plugins: [" + plugins + "]\n"));
    return path;
  }
  host::CommandResult train(const std::string& program, const std::string& file, const std::string& output,
                            const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {program, "train", file, "--output", scratch_ / output};
    words.insert(words.end(), more.begin(), more.end());
    return run_words(words);
  }
  std::string errors_of(const std::string& plugins, const std::vector<std::string>& more = {}) {
    const host::CommandResult result = train(kProgram, config(plugins), "bad", more);
    EXPECT_EQ(result.status.code, 2) << result.errors;
    return result.errors;
  }
};

TEST_F(OwnFlow, TrainsAsAPluginAsAnOptionAndAsAProgram) {
  ASSERT_TRUE(train(kProgram, config(kPlugin), "plugin").status.ok());
  const nlohmann::json last = metrics_of(scratch_ / "plugin").back();
  EXPECT_GT(last.at("novelty/answers").get<double>(), 0);
  for (const char* phase : {"gen", "reward", "counts.score", "adv", "update_actor"})
    EXPECT_TRUE(last.contains(std::string("timing_s/") + phase)) << phase;
  const host::CommandResult option = train(kProgram, config(""), "option", {"--plugin", kPlugin});
  ASSERT_TRUE(option.status.ok()) << option.errors;
  ASSERT_TRUE(train(kOwnProgram, config(""), "program").status.ok());
  const std::string bytes = model_bytes(scratch_ / "plugin");
  EXPECT_EQ(model_bytes(scratch_ / "option"), bytes);
  EXPECT_EQ(model_bytes(scratch_ / "program"), bytes);
  const host::CommandResult more = train(kProgram, config(kPlugin), "weight", {"--set", "options.weight=1"});
  ASSERT_TRUE(more.status.ok()) << more.errors;
  EXPECT_NE(model_bytes(scratch_ / "weight"), bytes) << "its option is read";
}

TEST_F(OwnFlow, TrainsInWorkersThatAreProcesses) {
  ASSERT_TRUE(train(kProgram, config(kPlugin), "threads").status.ok());
  const host::CommandResult apart =
      train(kProgram, config(""), "processes", {"--plugin", kPlugin, "--set", "cluster=local-processes"});
  ASSERT_TRUE(apart.status.ok()) << apart.errors;
  EXPECT_EQ(model_bytes(scratch_ / "processes"), model_bytes(scratch_ / "threads"));
}

// The counts of the module are in the checkpoint.
TEST_F(OwnFlow, GoesOnAsIfItHadNotStopped) {
  const std::string file = config(kPlugin);
  ASSERT_TRUE(train(kProgram, file, "whole").status.ok());
  ASSERT_TRUE(train(kProgram, file, "parts", {"--set", "run.iterations=1"}).status.ok());
  ASSERT_TRUE(train(kProgram, file, "parts").status.ok());
  EXPECT_EQ(metrics_of(scratch_ / "parts").back().at("novelty/answers"),
            metrics_of(scratch_ / "whole").back().at("novelty/answers"));
}

TEST_F(OwnFlow, IsARunWithItsPlugin) {
  const std::string copy = scratch_ / "mine.so";
  fs::copy(kPlugin, copy);
  const std::string file = config(copy);
  ASSERT_TRUE(train(kProgram, file, "run", {"--set", "run.iterations=1"}).status.ok());
  EXPECT_THAT(read_text(scratch_ / "run/config.resolved.yaml"), AllOf(HasSubstr(copy), HasSubstr("weight: 0.1")));
  std::ofstream(copy, std::ios::app) << "another build";
  const host::CommandResult other = train(kProgram, file, "run");
  EXPECT_EQ(other.status.code, 2);
  EXPECT_THAT(other.errors, AllOf(HasSubstr(copy), HasSubstr("it has changed since")));
}

TEST_F(OwnFlow, IsShownAsTheBuiltInOnes) {
  EXPECT_THAT(run_words({kProgram, "--plugin", kPlugin, "help", "recipes"}).output,
              HasSubstr("novelty  a policy on prompts with rewards, less for answers that it has often given"));
  EXPECT_THAT(
      run_words({kOwnProgram, "help", "novelty"}).output,
      AllOf(HasSubstr("{\"prompt\": \"2+2=\", \"ground_truth\": \"4\"}"), HasSubstr("options: {\"weight\":0.1}")));
  const host::CommandResult begun = run_words({kProgram, std::string("--plugin=") + kPlugin, "init", "novelty",
                                               scratch_ / "start", scratch_ / "problems.jsonl", "--output", "-"});
  EXPECT_THAT(begun.output,
              AllOf(HasSubstr("recipe: novelty\nplugins: [" + std::string(kPlugin) + "]"), HasSubstr("rollout:")));
  write_text(scratch_ / "begun.yaml", begun.output);
  const host::CommandResult checked =
      run_words({kProgram, "check", scratch_ / "begun.yaml", "--set", "models.policy.from_scratch=true"});
  EXPECT_TRUE(checked.status.ok()) << checked.errors;
}

TEST_F(OwnFlow, ErrorsNameTheNearest) {
  EXPECT_THAT(errors_of(kPlugin, {"--set", "recipe=novelti"}), HasSubstr("got \"novelti\"; try \"novelty\""));
  EXPECT_THAT(errors_of(kPlugin, {"--set", "options.wieght=1"}),
              HasSubstr("[--set options.wieght] expected an option of recipe novelty, one of weight, got 'wieght'; "
                        "try 'weight'"));
  EXPECT_THAT(errors_of(kPlugin, {"--set", "options.weight=much"}),
              HasSubstr("[--set options.weight] expected options.weight to be a number, got \"much\""));
  EXPECT_THAT(errors_of("", {"--set", "recipe=grpo", "--set", "options.weight=1"}),
              HasSubstr("expected no options with recipe grpo, which has none of its own"));
}

TEST_F(OwnFlow, APluginThatCannotBeUsedSaysWhy) {
  EXPECT_THAT(errors_of(COLLIMATE_BIN_DIR "/own_flo.so"),
              AllOf(HasSubstr("run.yaml:"), HasSubstr("expected a plugin that is there"), HasSubstr("own_flow.so")));
  EXPECT_THAT(errors_of("mine.txt"),
              HasSubstr("expected plugins to be shared libraries (.so) or Python files (.py), got \"mine.txt\""));
  EXPECT_THAT(errors_of(COLLIMATE_BIN_DIR "/no_plugin.so"),
              HasSubstr("no_plugin.so] expected a plugin, with COLLIMATE_PLUGIN { … } in one of its sources, got a "
                        "library without it"));
  EXPECT_THAT(errors_of(COLLIMATE_BIN_DIR "/other_version.so"),
              AllOf(HasSubstr("expected a plugin built for collimate 0.1.0 and the C++ ABI"),
                    HasSubstr("got one for collimate 0.0.9 and the C++ ABI 1017.1 (layout 0000000000000007)"),
                    HasSubstr("try building it again, with the headers of this Collimate")));
  EXPECT_THAT(errors_of(COLLIMATE_BIN_DIR "/needs_more.so"),
              AllOf(HasSubstr("expected a plugin that can be loaded"), HasSubstr("function_of_no_library")));
  EXPECT_THAT(errors_of(COLLIMATE_BIN_DIR "/throws.so"),
              HasSubstr("throws.so] expected a plugin that registers its parts, got [register_recipe] expected a name "
                        "that is free, got \"grpo\" again"));
}

}  // namespace
}  // namespace collimate::test
