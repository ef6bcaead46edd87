#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "collimate/graph/replay.h"
#include "collimate/host/core_pool.h"
#include "collimate/model/weights.h"
#include "tests/e2e/run_support.h"
#include "tests/fault/cli_support.h"

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
// The same as a file.
constexpr const char* kTwoDevicesFile =
    "version: 1\n"
    "devices: {count: 2, kind: cpu}\n"
    "groups:\n"
    "  trained: {devices: [0], models: [policy, policy_trainer, value]}\n"
    "  frozen: {devices: [1], models: [reference, reward]}\n";
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

// What a trained model of a run has left in its last checkpoint, by file: segments of weights, and the optimizer's.
std::map<std::string, std::string> state_of(const std::string& output, const std::string& model) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(output + "/checkpoints/step-000003/worker-0/" + model))
    files[entry.path().filename().string()] = read_text(entry.path());
  return files;
}

void expect_equal_state(const std::string& a, const std::string& b, const std::string& model) {
  const auto one = state_of(a, model), two = state_of(b, model);
  ASSERT_TRUE(one.contains("segment.0.bin") && one.contains("adamw.first.0.bin")) << model;
  EXPECT_NE(one.at("adamw.first.0.bin").find_first_not_of('\0'), std::string::npos) << model << " is not trained";
  ASSERT_EQ(one.size(), two.size()) << model;
  for (const auto& [file, bytes] : one)
    EXPECT_TRUE(two.contains(file) && two.at(file) == bytes) << model << " " << file;
}

std::vector<float> exported_weights(const std::string& output) {
  host::CorePool pool(1);
  const auto weights = model::load_huggingface(output + "/model", "lm", {}, {&pool});
  std::vector<float> all;
  for (int i = 0; i < static_cast<int>(weights->params().size()); ++i)
    all.insert(all.end(), weights->values(i).begin(), weights->values(i).end());
  return all;
}

// A run exports its policy alone; the value model's weights are those of the checkpoint.
std::vector<float> value_weights(const std::string& output) {
  std::string bytes;
  for (const auto& [file, content] : state_of(output, "value"))
    if (file.starts_with("segment.")) bytes += content;
  std::vector<float> all(bytes.size() / sizeof(float));
  std::memcpy(all.data(), bytes.data(), all.size() * sizeof(float));
  return all;
}

// ‖a − b‖ / ‖a‖.
double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_GT(a.size(), 10000U);
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double x = a[i], y = b[i];
    difference += (x - y) * (x - y);
    size += x * x;
  }
  return std::sqrt(difference / size);
}

// How far a metric may be from `expected` where two ranks share what one rank did.
double tolerance(size_t iteration, const std::string& name, double expected) {
  // Later iterations start from weights that were summed in another order.
  if (iteration > 0) return 1e-5 * std::max(1.0, std::abs(expected));
  // At ratio 1 the whitened advantages, of size 1, cancel: the loss is what rounding leaves of them, about 1e-9.
  if (name == "actor/loss") return 1e-6;
  return 1e-6 * std::abs(expected);
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
  write_text(scratch_ / "two-devices.yaml", kTwoDevicesFile);
  const std::string two = train("two", "ppo", with_reward_model({"placement=" + (scratch_ / "two-devices.yaml")}));
  EXPECT_TRUE(one == two);
  EXPECT_EQ(lasting_metrics(directory("one")).size(), 3U);
  EXPECT_EQ(lasting_metrics(directory("one")), lasting_metrics(directory("two")));
  for (const char* model : {"policy_trainer", "value"}) expect_equal_state(directory("one"), directory("two"), model);
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
  EXPECT_LT(relative_distance(exported_weights(directory("one")), exported_weights(directory("dp"))), 1e-5);
  EXPECT_LT(relative_distance(value_weights(directory("one")), value_weights(directory("dp"))), 1e-5);
  const Metrics one = metrics_of(directory("one")), dp = metrics_of(directory("dp"));
  ASSERT_EQ(one.size(), dp.size());
  for (size_t i = 0; i < one.size(); ++i)
    for (const char* name :
         {"actor/loss", "critic/loss", "critic/rewards/mean", "actor/grad_norm", "response_length/mean"}) {
      const double expected = one[i].at(name);
      EXPECT_NEAR(dp[i].at(name).get<double>(), expected, tolerance(i, name, expected))
          << name << " of iteration " << i + 1;
    }
  EXPECT_GT(one[0].at("critic/loss").get<double>(), 0);  // or nothing was compared relatively
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
