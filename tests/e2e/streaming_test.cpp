#include <gtest/gtest.h>

#include "collimate/base/at.h"
#include "tests/e2e/run_support.h"

namespace collimate::test {
namespace {

// Samples of very different lengths: a model with room for a thousand tokens that seldom draws the end of sequence.
std::string long_completions(const fs::path& root) {
  write_small_task(root);
  std::string shape = read_text(root / "start/config.json");
  const std::string positions = "\"max_position_embeddings\": 32";
  write_text(root / "start/config.json",
             shape.replace(shape.find(positions), positions.size(), "\"max_position_embeddings\": 1024"));
  std::string text = small_config("grpo", root);
  const std::string tokens = "completion_tokens: 6";
  return text.replace(text.find(tokens), tokens.size(), "completion_tokens: 1000, logit_bias: {1: -4}");
}

int64_t calls_of(const std::string& output, int iteration, const std::string& node) {
  const auto trace = nlohmann::json::parse(read_text(output + "/trace.json"));
  return std::count_if(trace.at("traceEvents").begin(), trace.at("traceEvents").end(), [&](const auto& event) {
    return event.at("ph") == "X" && event.at("name") == node && event.at("args").at("iteration") == iteration;
  });
}

// A finished sample gets its reward while the others are still drawn. Were all of them scored at the end, no iteration
// would have more than one call of the reward, or one that begins before generation's end.
TEST(Streaming, RewardsOfFinishedSamplesComeWhileOthersAreGenerated) {
  const Scratch scratch("streaming");
  const std::string output = scratch / "run";
  train_text(long_completions(scratch.path()), output);
  const Metrics metrics = metrics_of(output);
  ASSERT_EQ(metrics.size(), 3U);
  int overlapping = 0;
  for (int iteration = 1; iteration <= 3; ++iteration) {
    const nlohmann::json& line = base::at(metrics, iteration - 1);
    EXPECT_GT(line.at("response_length/max").get<double>(), 300 + line.at("response_length/min").get<double>());
    EXPECT_GT(calls_of(output, iteration, "reward.score"), 1) << "iteration " << iteration;
    const auto generate = spans_of(output, iteration, {"policy.generate"});
    const auto reward = spans_of(output, iteration, {"reward.score"});
    ASSERT_EQ(generate.size(), 1U);
    ASSERT_EQ(reward.size(), 1U);
    if (reward.begin()->second.begin < generate.begin()->second.end) ++overlapping;
  }
  EXPECT_GT(overlapping, 0);
}

}  // namespace
}  // namespace collimate::test
