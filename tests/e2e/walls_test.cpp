#include <gtest/gtest.h>

#include <cmath>

#include "collimate/graph/replay.h"
#include "collimate/host/core_pool.h"
#include "collimate/model/weights.h"
#include "tests/e2e/run_support.h"

namespace collimate::test {
namespace {

// One run under every wall of the house: where it runs must not show in what it learns.
class Walls : public testing::Test {
 protected:
  void SetUp() override { write_small_task(scratch_.path()); }

  // Trains and gives the bytes of the model.
  std::string train(const std::string& name, const std::string& recipe, const std::vector<std::string>& sets,
                    const recipe::TrainCall& call = {}) {
    train_text(small_config(recipe, scratch_.path()), directory(name), sets, call);
    return model_bytes(directory(name));
  }
  std::string directory(const std::string& name) const { return scratch_ / name; }

  // PPO whose reward is a model that the reward recipe trained.
  std::vector<std::string> with_reward_model(std::vector<std::string> sets) {
    if (!fs::exists(directory("judge"))) train("judge", "reward", {"train.learning_rate=1e-2"});
    sets.push_back("models.reward={path: " + directory("judge") + "/model}");
    sets.push_back("reward=null");
    return sets;
  }

  Scratch scratch_{"walls"};
};

constexpr const char* kOneDevice =
    "placement={version: 1, devices: {count: 1, kind: cpu}, "
    "groups: {all: {devices: [0], models: [policy, policy_trainer, value, reference, reward]}}}";
constexpr const char* kTwoDevices =
    "placement={version: 1, devices: {count: 2, kind: cpu}, "
    "groups: {trained: {devices: [0], models: [policy, policy_trainer, value]}, "
    "frozen: {devices: [1], models: [reference, reward]}}}";
constexpr const char* kDataParallel =
    "placement={version: 1, devices: {count: 2, kind: cpu}, "
    "groups: {all: {devices: [0, 1], models: [policy, policy_trainer, value, reference, reward]}}, "
    "layouts: {policy_trainer: {train: {dp: 2}}, value: {train: {dp: 2}}}}";

struct Span {
  double begin = 0;  // microseconds
  double end = 0;
};

// By worker, of one iteration: from the first start to the last end of the calls of `nodes`.
std::map<int, Span> spans_of(const std::string& output, int iteration, const std::vector<std::string>& nodes) {
  std::map<int, Span> spans;
  const auto trace = nlohmann::json::parse(read_text(output + "/trace.json"));
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("args").at("iteration") != iteration) continue;
    if (std::find(nodes.begin(), nodes.end(), event.at("name").get<std::string>()) == nodes.end()) continue;
    const double begin = event.at("ts"), end = begin + event.at("dur").get<double>();
    const auto [span, fresh] = spans.try_emplace(event.at("pid").get<int>(), Span{begin, end});
    if (!fresh) span->second = {std::min(span->second.begin, begin), std::max(span->second.end, end)};
  }
  return spans;
}

// ‖a − b‖ / ‖a‖ over all weights of two model directories.
double relative_distance(const std::string& a, const std::string& b) {
  host::CorePool pool(1);
  const auto one = model::load_huggingface(a, "lm", {}, {&pool}), two = model::load_huggingface(b, "lm", {}, {&pool});
  double difference = 0, size = 0;
  for (int i = 0; i < static_cast<int>(one->params().size()); ++i)
    for (size_t k = 0; k < one->values(i).size(); ++k) {
      const double x = one->values(i)[k], y = two->values(i)[k];
      difference += (x - y) * (x - y);
      size += x * x;
    }
  return std::sqrt(difference / size);
}

TEST_F(Walls, WorkersAndMessagesFromReparsedText) {
  const std::vector<std::string> kl = {"algorithm.beta=0.04"};
  recipe::TrainCall reparse;
  reparse.reparse = true;
  const std::string plain = train("plain", "grpo", kl);
  EXPECT_GT(plain.size(), 10000U);
  EXPECT_TRUE(plain == train("reparsed", "grpo", kl, reparse));
  EXPECT_TRUE(train("ppo", "ppo", {}) == train("ppo-reparsed", "ppo", {}, reparse));
  EXPECT_TRUE(train("dpo", "dpo", {}) == train("dpo-reparsed", "dpo", {}, reparse));
}

TEST_F(Walls, AWorkerAsAChildProcess) {
  recipe::TrainCall call;
  call.worker_command = {COLLIMATE_BIN_DIR "/collimate", "worker"};
  const std::vector<std::string> sets = {"run.iterations=1", "algorithm.beta=0.04"};
  const std::string threads = train("threads", "grpo", sets);
  std::vector<std::string> processes = sets;
  processes.emplace_back("cluster=local-processes");
  EXPECT_TRUE(threads == train("processes", "grpo", processes, call));
}

TEST_F(Walls, PpoUnderTwoPlacementsHasEqualBits) {
  const std::string one = train("one", "ppo", with_reward_model({kOneDevice}));
  const std::string two = train("two", "ppo", with_reward_model({kTwoDevices}));
  EXPECT_TRUE(one == two);
  int overlapping = 0;
  for (int iteration = 0; iteration < 3; ++iteration) {
    const auto frozen = spans_of(directory("two"), iteration, {"reference.log_probs", "reward.score"});
    const auto trained = spans_of(directory("two"), iteration, {"policy.generate", "value.values"});
    ASSERT_EQ(frozen.size(), 1U);
    ASSERT_EQ(trained.size(), 1U);
    EXPECT_EQ(trained.begin()->first, 0);
    EXPECT_EQ(frozen.begin()->first, 1);
    if (frozen.at(1).begin < trained.at(0).end && trained.at(0).begin < frozen.at(1).end) ++overlapping;
    EXPECT_EQ(spans_of(directory("one"), iteration, {"reference.log_probs", "value.values"}).size(), 1U);
  }
  EXPECT_GT(overlapping, 0);
}

TEST_F(Walls, PpoWithItsTrainedModelsAtDataParallelTwo) {
  train("one", "ppo", with_reward_model({kOneDevice}));
  train("dp", "ppo", with_reward_model({kDataParallel}));
  EXPECT_LT(relative_distance(directory("one") + "/model", directory("dp") + "/model"), 1e-5);
  const Metrics one = metrics_of(directory("one")), dp = metrics_of(directory("dp"));
  ASSERT_EQ(one.size(), dp.size());
  for (size_t i = 0; i < one.size(); ++i)
    for (const char* name :
         {"actor/loss", "critic/loss", "critic/rewards/mean", "actor/grad_norm", "response_length/mean"}) {
      const double expected = one[i].at(name);
      // The first iteration starts from equal weights; the others from weights that summed in another order.
      const double tolerance = (i == 0 ? 1e-6 : 1e-5) * std::max(1.0, std::abs(expected));
      EXPECT_NEAR(dp[i].at(name).get<double>(), expected, tolerance) << name << " of iteration " << i + 1;
    }
}

TEST_F(Walls, RecordedEventsReplayToTheRecordedActions) {
  train("grpo", "grpo", {"algorithm.beta=0.04"});
  train("one", "ppo", with_reward_model({kOneDevice}));
  train("two", "ppo", with_reward_model({kTwoDevices}));
  for (const char* run : {"grpo", "one", "two"}) {
    const std::string recording = read_text(directory(run) + "/events.jsonl");
    EXPECT_GT(recording.size(), 1000U);
    EXPECT_EQ(graph::check_recording(recording), "") << run;
  }
  // An event less must show.
  std::vector<std::string> lines = lines_of(directory("grpo") + "/events.jsonl");
  std::string shorter;
  for (size_t i = 0; i < lines.size(); ++i)
    if (i != 3) shorter += lines[i] + "\n";
  bool noticed = false;
  try {
    noticed = !graph::check_recording(shorter).empty();
  } catch (const std::exception&) {
    noticed = true;
  }
  EXPECT_TRUE(noticed);
}

}  // namespace
}  // namespace collimate::test
