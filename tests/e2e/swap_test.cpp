#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/recipe/check.h"
#include "tests/e2e/near_runs.h"
#include "tests/support/graph/replay.h"

// Models that take turns on a device: what they learn is what they learn when all are there.
namespace collimate::test {
namespace {

constexpr const char* kAll = "policy: swap, policy_trainer: swap, reference: swap, value: swap, reward: swap";

class SwappedModels : public NearRuns {
 protected:
  // One group of devices whose models take turns.
  static std::string in_turn(const std::string& models, const std::string& residency, const std::string& layouts = "",
                             const std::string& devices = "0") {
    const int count = devices == "0" ? 1 : 2;
    return "placement={version: 1, devices: {count: " + std::to_string(count) +
           ", kind: cpu}, groups: {all: {devices: [" + devices + "], models: [" + models + "]}}, residency: {" +
           residency + "}" + (layouts.empty() ? "" : ", layouts: {" + layouts + "}") + "}";
  }
  std::vector<std::string> ppo(const std::vector<std::string>& sets) { return with_reward_model(sets); }
  std::vector<std::string> swapped_ppo() {
    return ppo({in_turn("policy, policy_trainer, value, reference, reward", kAll)});
  }
  double planned_bytes(const std::string& name) const {
    const auto summary = nlohmann::json::parse(read_text(directory(name) + "/summary.json"));
    return summary.at("memory").at("workers").at(0).at("planned_bytes").get<double>();
  }
  void expect_equal_runs(const std::string& whole, const std::string& swapped,
                         const std::vector<std::string>& trained) {
    EXPECT_EQ(without_cache_counts(lasting_metrics(directory(whole))),
              without_cache_counts(lasting_metrics(directory(swapped))));
    for (const std::string& model : trained)
      EXPECT_TRUE(state_of(directory(whole), model, 3) == state_of(directory(swapped), model, 3)) << model;
    for (const nlohmann::json& line : metrics_of(directory(swapped))) {
      if (line.at("step") == 0) continue;  // the evaluation before the first iteration
      EXPECT_GT(line.at("timing_s/swap").get<double>(), 0);
    }
  }
};

TEST_F(SwappedModels, PpoOfFiveModelsInTurnHasTheBitsOfAllTogether) {
  const std::string bits = train("whole", "ppo", ppo({kOneDevice}));
  EXPECT_TRUE(bits == train("swapped", "ppo", swapped_ppo()));
  expect_equal_runs("whole", "swapped", {"policy_trainer", "value"});
  EXPECT_LT(planned_bytes("swapped"), 0.6 * planned_bytes("whole"));
  const auto summary = nlohmann::json::parse(read_text(directory("swapped") + "/summary.json"));
  const nlohmann::json& worker = summary.at("memory").at("workers").at(0);
  EXPECT_LE(worker.at("peak_bytes"), worker.at("planned_bytes"));
  EXPECT_EQ(graph::check_recording(read_text(directory("swapped") + "/events.jsonl")), "");
  EXPECT_TRUE(bits == train_apart("processes", "ppo", swapped_ppo()));
}

TEST_F(SwappedModels, ABudgetKeepsAsManyAsItHasRoomForAndOneTooSmallIsRefused) {
  const std::string bits = train("whole", "ppo", ppo({kOneDevice}));
  train("swapped", "ppo", swapped_ppo());
  const auto mebi = [](double bytes) { return static_cast<int>(std::ceil(bytes / (1 << 20))); };
  const int least = mebi(planned_bytes("swapped")), all = mebi(planned_bytes("whole"));
  ASSERT_LT(least, all);
  const auto budget = [&](int size) { return with(swapped_ppo(), {fmt::format("run.memory_budget={}", size)}); };
  EXPECT_TRUE(bits == train("least", "ppo", budget(least)));
  EXPECT_TRUE(bits == train("more", "ppo", budget((least + all) / 2)));
  EXPECT_THAT(
      refusal("ppo", budget(least / 2)),
      testing::ContainsRegex(R"(expected at most .* while .*, got a plan of [0-9.]+ MiB \(.*(policy|value): )"));
  // The budget that the refusal advises is the least that there is.
  EXPECT_THAT(refusal("ppo", budget(1)),
              testing::HasSubstr(fmt::format("; try run.memory_budget: {}, residency", least)));
  const recipe::Findings found = recipe::check(recipe::load(directory("least") + ".yaml", budget(least)));
  EXPECT_THAT(found.problems, testing::IsEmpty());
}

TEST_F(SwappedModels, ARunThatStopsOrIsKilledGoesOnWithTheSameBits) {
  const std::vector<std::string> sets = with(swapped_ppo(), {"run.save_every=1"});
  const std::string bits = train("whole", "ppo", sets);
  // That models came in for a save is no iteration that has begun.
  const auto saved = nlohmann::json::parse(read_text(directory("whole") + "/checkpoints/step-000002/drive/state.json"));
  EXPECT_EQ(saved.at("drive/open"), nlohmann::json::array());
  EXPECT_TRUE(bits == train_in_two("cut", "ppo", sets, sets));
  EXPECT_EQ(lasting_metrics(directory("whole")), lasting_metrics(directory("cut")));
  // Placements may change on the way: a checkpoint knows nothing of turns.
  EXPECT_TRUE(bits == train_in_two("all", "ppo", ppo({kOneDevice}), sets));
  write_text(scratch_ / "killed.yaml", small_config("ppo", scratch_.path()));
  std::vector<std::string> words = {"train", scratch_ / "killed.yaml", "--output", directory("killed")};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  const auto killed = run_collimate(words, {{"COLLIMATE_TEST_KILL_AT", "value.train:2"}});
  EXPECT_FALSE(killed.status.ok());
  EXPECT_TRUE(run_collimate(words).status.ok());
  EXPECT_TRUE(bits == model_bytes(directory("killed")));
  EXPECT_EQ(lasting_metrics(directory("whole")), lasting_metrics(directory("killed")));
  for (const char* model : {"policy_trainer", "value"})
    EXPECT_TRUE(state_of(directory("whole"), model, 3) == state_of(directory("killed"), model, 3)) << model;
}

TEST_F(SwappedModels, EvaluationsAveragesAndAdaptersOverOneBase) {
  const std::vector<std::string> evaluated = {"algorithm.beta=0.04", "train.ema=0.9", "run.evaluate_every=1",
                                              "data.eval=" + (scratch_ / "held_out.jsonl")};
  const std::string models = "policy, policy_trainer, reference",
                    swap = "policy: swap, policy_trainer: swap, reference: swap";
  const std::string bits = train("whole", "grpo", evaluated);
  EXPECT_TRUE(bits == train("swapped", "grpo", with(evaluated, {in_turn(models, swap)})));
  expect_equal_runs("whole", "swapped", {"policy_trainer"});
  EXPECT_TRUE(read_text(directory("whole") + "/model-ema/model.safetensors") ==
              read_text(directory("swapped") + "/model-ema/model.safetensors"));
  train("sft", "sft", {"train.learning_rate=1e-2"});
  const std::vector<std::string> lora = {"models.policy={path: " + directory("sft") + "/model, lora: {rank: 2}}",
                                         "algorithm.beta=0.04"};
  const std::string adapted = train("adapted", "grpo", lora);
  EXPECT_TRUE(adapted == train("adapted-swapped", "grpo", with(lora, {in_turn(models, swap)})));
  expect_equal_runs("adapted", "adapted-swapped", {"policy_trainer"});
}

TEST_F(SwappedModels, DpoAndSharedLayoutsTakeTurnsToo) {
  const std::string dpo = train("dpo", "dpo", {});
  EXPECT_TRUE(dpo == train("dpo-swapped", "dpo", {in_turn("policy, reference", "policy: swap, reference: swap")}));
  expect_equal_runs("dpo", "dpo-swapped", {"policy"});
  const std::string models = "policy, policy_trainer, reference",
                    swap = "policy: swap, policy_trainer: swap, reference: swap";
  for (const std::string axis : {"tp: 2", "pp: 2", "zero: 3"}) {
    const std::string layout = "policy: {generate: {" + axis + "}}, policy_trainer: {train: {" + axis +
                               "}}, reference: {log_probs: {" + axis + "}}";
    const std::string name = axis.substr(0, axis.find(':'));
    const std::string whole = train(name, "grpo", with(one(), {"devices=2", in_turn(models, "", layout, "0, 1")}));
    EXPECT_TRUE(whole == train(name + "-swapped", "grpo", with(one(), {in_turn(models, swap, layout, "0, 1")})))
        << axis;
  }
}

TEST_F(SwappedModels, GenerationApartWithAReferenceInTurn) {
  const std::string groups =
      "placement={version: 1, devices: {count: 2, kind: cpu}, groups: {training: {devices: [0], models: "
      "[policy_trainer]}, rollout: {devices: [1], models: [policy, reference]}}";
  const std::string whole = train("apart", "grpo", with(one(), {groups + "}"}));
  EXPECT_TRUE(whole ==
              train("apart-swapped", "grpo",
                    with(one(), {groups + ", residency: {policy: swap, policy_trainer: swap, reference: swap}}"})));
  expect_equal_runs("apart", "apart-swapped", {"policy_trainer"});
}

// On one device the policy is its trainer's weights, on another it has weights of its own, which the link fills.
TEST_F(SwappedModels, GroupsThatOverlapAndStagesOverOneBase) {
  const std::string groups =
      "placement={version: 1, devices: {count: 3, kind: cpu}, groups: {training: {devices: [0, 1], models: "
      "[policy_trainer, reference]}, rollout: {devices: [1, 2], models: [policy]}}";
  const std::string swap = ", residency: {policy: swap, policy_trainer: swap, reference: swap}";
  const std::string whole = train("overlap", "grpo", with(one(), {groups + "}"}));
  EXPECT_TRUE(whole == train("overlap-swapped", "grpo", with(one(), {groups + swap + "}"})));
  expect_equal_runs("overlap", "overlap-swapped", {"policy_trainer"});
  train("sft", "sft", {"train.learning_rate=1e-2"});
  const std::string
      models = "policy, policy_trainer, value, reference, reward",
      layouts = "policy: {generate: {pp: 2}}, policy_trainer: {train: {pp: 2}}, reference: {log_probs: {pp: 2}}";
  const auto lora = [&](const std::string& residency) {
    return ppo({"models.policy={path: " + directory("sft") + "/model, lora: {rank: 2}}",
                in_turn(models, residency, layouts, "0, 1")});
  };
  EXPECT_TRUE(train("lora", "ppo", lora("")) == train("lora-swapped", "ppo", lora(kAll)));
  expect_equal_runs("lora", "lora-swapped", {"policy_trainer", "value"});
}

TEST_F(SwappedModels, AnOptimizerThatIsAwayBetweenUpdatesLearnsAsOneThatStays) {
  const std::vector<std::string> away = {"train.offload=optimizer", "run.swap_directory=" + (scratch_ / "swap")};
  const std::string bits = train("whole", "grpo", {});
  EXPECT_TRUE(bits == train("away", "grpo", away));
  EXPECT_TRUE(state_of(directory("whole"), "policy_trainer", 3) == state_of(directory("away"), "policy_trainer", 3));
  const char* optimizer = "policy/optimizer";
  EXPECT_LT(taken_bytes(directory("away"), optimizer), 0.6 * taken_bytes(directory("whole"), optimizer));
  EXPECT_TRUE(bits == train_apart("processes", "grpo", away));
  EXPECT_TRUE(bits == train_in_two("cut", "grpo", {}, away));
  EXPECT_TRUE(bits == train("turns", "grpo",
                            with(away, {in_turn("policy, policy_trainer", "policy: swap, policy_trainer: swap",
                                                "policy_trainer: {train: {offload: true}}")})));
  for (const std::string layout : {"tp=2", "zero=3"}) {
    const std::vector<std::string> two = {"devices=2", layout};
    EXPECT_TRUE(train("two " + layout, "grpo", two) == train("away " + layout, "grpo", with(two, away))) << layout;
  }
}

TEST_F(SwappedModels, RecomputingActivationsLearnsTheSame) {
  const std::string bits = train("none", "grpo", {});
  EXPECT_TRUE(bits == train("selective", "grpo", {"train.recompute=selective"}));
  EXPECT_TRUE(bits == train("full", "grpo", {"train.recompute=full"}));
  const char* activations = "policy/activations";
  EXPECT_LT(taken_bytes(directory("selective"), activations), 0.9 * taken_bytes(directory("none"), activations));
  EXPECT_LT(taken_bytes(directory("full"), activations), taken_bytes(directory("selective"), activations));
}

TEST_F(SwappedModels, AFullDiskIsFoundBeforeTheFirstIteration) {
  write_text(scratch_ / "full.yaml", small_config("ppo", scratch_.path()));
  std::vector<std::string> words = {"train", scratch_ / "full.yaml", "--output", directory("full")};
  for (const std::string& set : swapped_ppo()) words.insert(words.end(), {"--set", set});
  const auto full = run_collimate(words, {{"COLLIMATE_TEST_DISK_BYTES", "100000"}});
  EXPECT_EQ(full.status.code, 1) << full.errors;
  EXPECT_THAT(full.errors, testing::ContainsRegex("full\\] expected room for what leaves the device: [0-9]+ more bytes "
                                                  "beside [0-9]+, got No space left on device"));
  EXPECT_FALSE(fs::exists(directory("full") + "/metrics.jsonl") && metrics_of(directory("full")).size() > 0);
  write_text(scratch_ / "sft.yaml", small_config("sft", scratch_.path()));
  const auto optimizer = run_collimate(
      {"train", scratch_ / "sft.yaml", "--output", directory("full-sft"), "--set", "train.offload=optimizer"},
      {{"COLLIMATE_TEST_DISK_BYTES", "10000"}});
  EXPECT_EQ(optimizer.status.code, 1) << optimizer.errors;
  EXPECT_THAT(optimizer.errors, testing::HasSubstr("expected room for what leaves the device"));
  EXPECT_THAT(refusal("ppo", ppo({in_turn("policy, policy_trainer, value, reference, reward", "advantages: swap")})),
              testing::HasSubstr("advantages"));
}

}  // namespace
}  // namespace collimate::test
