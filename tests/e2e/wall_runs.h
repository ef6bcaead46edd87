#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/e2e/run_support.h"
#include "tests/fault/cli_support.h"
#include "tests/support/saved_values.h"

namespace collimate::test {

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

inline constexpr const char* kOneDevice =
    "placement={version: 1, devices: {count: 1, kind: cpu}, "
    "groups: {all: {devices: [0], models: [policy, policy_trainer, value, reference, reward]}}}";

// Reads what a rank of a trained model of a run has left in the checkpoint of an iteration, by file: segments of
// weights, and the optimizer's.
inline std::map<std::string, std::string> state_of(const std::string& output, const std::string& model, int step,
                                                   int rank = 0) {
  std::map<std::string, std::string> files;
  const std::string directory = fmt::format("{}/checkpoints/step-{:06}/models/{}/rank-{}", output, step, model, rank);
  for (const auto& entry : fs::directory_iterator(directory))
    files[entry.path().filename().string()] = read_text(entry.path());
  return files;
}

}  // namespace collimate::test
