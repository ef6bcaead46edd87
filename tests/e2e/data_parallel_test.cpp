#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/near_runs.h"
#include "tests/support/base/error_of.h"

// Two ranks that share what one rank did, against that one: equal but for the order of sums.
namespace collimate::test {
namespace {

constexpr const char* kDataParallel =
    "placement={version: 1, devices: {count: 2, kind: cpu}, "
    "groups: {all: {devices: [0, 1], models: [policy, policy_trainer, value, reference, reward]}}, "
    "layouts: {policy_trainer: {train: {dp: 2}}, value: {train: {dp: 2}}}}";
constexpr const char* kReferenceDataParallel =
    "placement={version: 1, devices: {count: 2, kind: cpu}, "
    "groups: {all: {devices: [0, 1], models: [policy, policy_trainer, reference]}}, "
    "layouts: {policy_trainer: {train: {dp: 2}}}}";
constexpr const char* kPolicyDataParallel =
    "placement={version: 1, devices: {count: 2, kind: cpu}, "
    "groups: {all: {devices: [0, 1], models: [policy, policy_trainer]}}, "
    "layouts: {policy_trainer: {train: {dp: 2}}}}";

class DataParallel : public Walls {
 protected:
  // Trains one iteration of one update on one rank and on two, and compares the gradients tensor by tensor.
  void expect_equal_first_update(const std::string& recipe, std::vector<std::string> one, std::vector<std::string> two,
                                 const std::vector<std::string>& models) {
    for (auto* sets : {&one, &two}) sets->emplace_back("run.iterations=1");
    train("one", recipe, one);
    train("two", recipe, two);
    for (const std::string& model : models) {
      const SavedValues expected = first_gradients(directory("one"), model),
                        shared = first_gradients(directory("two"), model);
      EXPECT_GT(expected.size(), 10U);
      for (const auto& [name, gradient] : expected) {
        const auto [distance, norm] = distance_and_norm(gradient, shared.at(name));
        EXPECT_GT(norm, 0) << model << " " << name;
        EXPECT_LE(distance, 1e-5 * norm) << model << " " << name;
      }
    }
  }
  // The bound is relative to the iteration's loss.
  void expect_equal_loss(const std::string& name) {
    const double one = metrics_of(directory("one")).at(0).at(name), two = metrics_of(directory("two")).at(0).at(name);
    EXPECT_GT(std::abs(one), 1e-3) << name;
    EXPECT_NEAR(two, one, 1e-6 * std::abs(one)) << name;
  }
};

// Tensors of both trained models; the value model starts as the reward model, as a fresh head passes no gradient down.
TEST_F(DataParallel, PposFirstUpdateIsThatOfOneRank) {
  auto one = with_reward_model({kOneDevice}), two = with_reward_model({kDataParallel});
  for (auto* sets : {&one, &two}) sets->push_back("models.value={path: " + directory("judge") + "/model}");
  expect_equal_first_update("ppo", one, two, {"policy_trainer", "value"});
  expect_equal_loss("critic/loss");
}

// A loss that is a mean over tokens is not 0 at ratio 1, as one of whitened advantages is.
TEST_F(DataParallel, GrposFirstUpdateIsThatOfOneRank) {
  const std::string loss = "algorithm.loss_type=dapo";
  expect_equal_first_update("grpo", {loss}, {loss, kPolicyDataParallel}, {"policy_trainer"});
  expect_equal_loss("actor/loss");
}

TEST_F(DataParallel, MetricsOfTrainingAreOfAllRanks) {
  const std::vector<std::string> sets = {"algorithm.beta=0.1", "algorithm.entropy_coefficient=0.01",
                                         "algorithm.loss_type=dapo", "train.ppo_epochs=2", "run.iterations=1"};
  std::vector<std::string> two = sets;
  two.emplace_back(kReferenceDataParallel);
  train("one", "grpo", sets);
  train("two", "grpo", two);
  const Metrics one = metrics_of(directory("one")), shared = metrics_of(directory("two"));
  expect_near(one, shared);
  for (const auto* metrics : {&one, &shared}) {
    const auto& first = metrics->at(0);
    EXPECT_GT(first.at("mismatch/tokens_compared").get<double>(), 0);
    EXPECT_GT(first.at("mismatch/tokens_other_version").get<double>(), 0);
  }
}

TEST_F(DataParallel, PpoStaysCloseToOneRank) {
  train("one", "ppo", with_reward_model({kOneDevice}));
  train("dp", "ppo", with_reward_model({kDataParallel}));
  EXPECT_LT(relative_distance(exported_weights(directory("one")), exported_weights(directory("dp"))), 1e-5);
  EXPECT_LT(relative_distance(value_weights(directory("one")), value_weights(directory("dp"))), 1e-5);
  const Metrics one = metrics_of(directory("one"));
  expect_near(one, metrics_of(directory("dp")));
  EXPECT_GT(one[0].at("critic/loss").get<double>(), 0);  // or nothing was compared relatively
}

// Gives that placement, whose ranks share the optimizer of each model that is trained, and its gradient by stage 2.
std::string with_zero(std::string placement, int stage) {
  const std::string whole = "{dp: 2}", shared = fmt::format("{{dp: 2, zero: {}}}", stage);
  for (size_t at = placement.find(whole); at != std::string::npos; at = placement.find(whole, at + shared.size()))
    placement.replace(at, whole.size(), shared);
  return placement;
}

// The most that the optimizer's numbers of a model took on the first device.
double moment_bytes(const std::string& output, const std::string& weights) {
  const auto summary = nlohmann::json::parse(read_text(output + "/summary.json"));
  for (const nlohmann::json& item : summary.at("memory").at("workers").at(0).at("items"))
    if (item.at("item") == weights + "/optimizer") return item.at("peak_bytes").get<double>();
  ADD_FAILURE() << "no optimizer of " << weights;
  return 0;
}

// ZeRO's first stage; the run ends after two iterations and goes on.
TEST_F(DataParallel, SharedOptimizersGiveTheBitsOfWholeOnes) {
  for (const bool ppo : {false, true}) {
    const std::string recipe = ppo ? "ppo" : "grpo", placement = ppo ? kDataParallel : kReferenceDataParallel;
    const auto sets = [&](const std::string& placed) {
      return ppo ? with_reward_model({placed}) : std::vector<std::string>{placed, "algorithm.beta=0.1"};
    };
    const std::string whole = train(recipe + "-whole", recipe, sets(placement));
    std::vector<std::string> shared = sets(with_zero(placement, 1));
    shared.emplace_back("run.iterations=2");
    train(recipe + "-shared", recipe, shared);
    shared.back() = "run.iterations=3";
    EXPECT_TRUE(whole == train(recipe + "-shared", recipe, shared)) << recipe;
    EXPECT_EQ(lasting_metrics(directory(recipe + "-whole")), lasting_metrics(directory(recipe + "-shared"))) << recipe;
    for (const std::string model : {"policy", "value"}) {
      if (!ppo && model == "value") continue;
      EXPECT_LT(moment_bytes(directory(recipe + "-shared"), model),
                0.7 * moment_bytes(directory(recipe + "-whole"), model))
          << recipe << " " << model;
      const std::string trained = model == "policy" ? "policy_trainer" : model;
      EXPECT_EQ(saved_values_of(directory(recipe + "-shared"), trained, 3),
                saved_values_of(directory(recipe + "-whole"), trained, 3));
    }
  }
  EXPECT_EQ(value_weights(directory("ppo-whole")), value_weights(directory("ppo-shared")));
}

// The second stage: the same but for the order of sums, and the same again.
TEST_F(DataParallel, SharedGradientsStayCloseToWholeOnes) {
  train("whole", "ppo", with_reward_model({kDataParallel}));
  const auto shared = with_reward_model({with_zero(kDataParallel, 2)});
  EXPECT_TRUE(train("shared", "ppo", shared) == train("again", "ppo", shared));
  EXPECT_LT(relative_distance(exported_weights(directory("whole")), exported_weights(directory("shared"))), 1e-5);
  EXPECT_LT(relative_distance(value_weights(directory("whole")), value_weights(directory("shared"))), 1e-5);
  expect_near(metrics_of(directory("whole")), metrics_of(directory("shared")));
  const auto summary = nlohmann::json::parse(read_text(directory("shared") + "/summary.json"));
  for (const nlohmann::json& item : summary.at("memory").at("workers").at(1).at("items")) {
    const std::string name = item.at("item");
    if (name.ends_with("/gradient") || name.ends_with("/optimizer")) {
      EXPECT_EQ(item.at("planned_bytes"), item.at("peak_bytes")) << name;
    }
  }
}

// A placement bounds micro-batches by rows, which changes the order of sums alone, and may have the backward compute
// activations again, which changes no bit.
TEST_F(DataParallel, RowsOfMicroBatchesAreThePlacements) {
  const auto placed = [](const std::string& train, const std::string& others) {
    return "placement={version: 1, devices: {count: 1, kind: cpu}, "
           "groups: {all: {devices: [0], models: [policy, policy_trainer, reference]}}, layouts: {policy_trainer: "
           "{train: {" +
           train + "}}, policy: {generate: {" + others + "}}, reference: {log_probs: {" + others + "}}}}";
  };
  const std::string beta = "algorithm.beta=0.1";
  const std::string plain = train("plain", "grpo", {placed("dp: 1", ""), beta});
  EXPECT_TRUE(plain == train("again", "grpo", {placed("recompute: true", ""), beta}));
  train("cut", "grpo", {placed("micro_batch: 1, recompute: true", "micro_batch: 1"), beta});
  EXPECT_LT(relative_distance(exported_weights(directory("plain")), exported_weights(directory("cut"))), 1e-5);
  for (const char* item : {"policy/activations", "reference/workspace"})
    EXPECT_LT(taken_bytes(directory("cut"), item), 0.7 * taken_bytes(directory("plain"), item)) << item;
  const Metrics one = metrics_of(directory("plain")), cut = metrics_of(directory("cut"));
  EXPECT_GT(cut.at(0).at("rollout/steps").get<double>(), 1.5 * one.at(0).at("rollout/steps").get<double>());
}

class ProcessRanks : public DataParallel {
 protected:
  // Trains with workers that are processes.
  std::string train_apart(const std::string& name, const std::string& recipe, std::vector<std::string> sets,
                          std::vector<std::string> worker_command = {collimate_program(), "worker"}) {
    sets.emplace_back("cluster=local-processes");
    recipe::TrainCall call;
    call.worker_command = std::move(worker_command);
    return train(name, recipe, sets, call);
  }
};

// Ranks that are processes sum by the same tree as threads.
TEST_F(ProcessRanks, GiveTheBitsOfThreads) {
  const std::map<std::string, std::vector<std::string>> recipes = {
      {"sft", {"devices=2"}},
      {"grpo", {kReferenceDataParallel, "algorithm.beta=0.1", "algorithm.loss_type=dapo"}},
      {"ppo", with_reward_model({kDataParallel})}};
  for (const auto& [recipe, sets] : recipes) {
    const std::string threads = train(recipe + "-threads", recipe, sets);
    const std::string processes = directory(recipe + "-processes");
    EXPECT_TRUE(threads == train_apart(recipe + "-processes", recipe, sets)) << recipe;
    EXPECT_EQ(lasting_metrics(directory(recipe + "-threads")), lasting_metrics(processes)) << recipe;
    EXPECT_EQ(spans_of(processes, 1, {recipe == "sft" ? "policy.train" : "policy_trainer.train"}).size(), 2U) << recipe;
  }
  EXPECT_EQ(value_weights(directory("ppo-threads")), value_weights(directory("ppo-processes")));
}

// The first worker that starts is killed in its second iteration; the other one hears of it, and so does the user. The
// same command goes on from the checkpoint.
TEST_F(ProcessRanks, OneKilledOfTwoEndsTheRunWhichGoesOn) {
  const std::vector<std::string> sets = {kPolicyDataParallel, "run.deadline_seconds=1000000", "run.save_every=1"};
  const std::string whole = train_apart("whole", "grpo", sets);
  const Environment killed = {{"COLLIMATE_TEST_KILL_AT", "policy_trainer.train:2"}};
  write_text(scratch_ / "worker.sh",
             fmt::format("mkdir '{}' 2>/dev/null && export {}={}\nexec '{}' worker \"$@\"\n", scratch_ / "first worker",
                         killed[0].first, killed[0].second, collimate_program(killed)));
  const std::string error = base::message_of<base::RunError>([&] {
    train_apart("killed", "grpo", sets, {"/bin/sh", scratch_ / "worker.sh"});
  });
  EXPECT_THAT(error, testing::AnyOf(testing::HasSubstr("the worker process ended with signal 9 (Killed)"),
                                    testing::ContainsRegex("the process of rank [01] \\([0-9]+\\) has ended")));
  EXPECT_TRUE(whole == train_apart("killed", "grpo", sets));
  EXPECT_EQ(lasting_metrics(directory("whole")), lasting_metrics(directory("killed")));
}

}  // namespace
}  // namespace collimate::test
