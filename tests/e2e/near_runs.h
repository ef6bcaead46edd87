#pragma once

#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "collimate/host/core_pool.h"
#include "collimate/model/weights.h"
#include "tests/e2e/wall_runs.h"
#include "tests/support/base/error_of.h"

// Runs that are equal but for the order of sums.
namespace collimate::test {

// Gives what a run's first worker took at most for an item of its memory, which is not more than was planned.
inline double taken_bytes(const std::string& output, const std::string& item) {
  const auto summary = nlohmann::json::parse(read_text(output + "/summary.json"));
  for (const nlohmann::json& one : summary.at("memory").at("workers").at(0).at("items"))
    if (one.at("item") == item) {
      EXPECT_LE(one.at("peak_bytes"), one.at("planned_bytes")) << output << " " << item;
      return one.at("peak_bytes").get<double>();
    }
  ADD_FAILURE() << output << " has no " << item;
  return 0;
}

inline std::vector<float> exported_weights(const std::string& output, const std::string& head = "lm") {
  host::CorePool pool(1);
  const auto weights = model::load_huggingface(output + "/model", head, {}, {&pool});
  std::vector<float> all;
  for (int i = 0; i < static_cast<int>(weights->params().size()); ++i)
    all.insert(all.end(), weights->values(i).begin(), weights->values(i).end());
  return all;
}

// A run exports its policy alone; the value model's weights are those of the checkpoint.
inline std::vector<float> value_weights(const std::string& output) {
  std::vector<float> all;
  for (const auto& [name, values] : saved_values_of(output, "value", 3))
    if (name.starts_with("weights ")) all.insert(all.end(), values.begin(), values.end());
  return all;
}

// Returns by tensor the gradient of the first update, clipped and times a constant, which is what the first moment is
// after it.
inline SavedValues first_gradients(const std::string& output, const std::string& model, size_t tp = 1) {
  SavedValues gradients = saved_values_of(output, model, 1, tp);
  std::erase_if(gradients, [](const auto& tensor) { return !tensor.first.starts_with("adamw.first "); });
  return gradients;
}

// The numbers of the metrics but those of what the key-value cache still had of earlier prompts, and how much was
// computed for that reason, as docs/how-to/devices.md has them.
inline std::vector<std::string> without_cache_counts(std::vector<std::string> lines) {
  for (std::string& line : lines) {
    auto record = nlohmann::ordered_json::parse(line);
    for (const char* count : {"prefill_tokens", "shared_prompt_tokens", "steps", "preemptions"})
      record.erase(std::string("rollout/") + count);
    line = record.dump();
  }
  return lines;
}

// ‖a − b‖ and ‖a‖.
inline std::pair<double, double> distance_and_norm(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double x = a[i], y = b[i];
    difference += (x - y) * (x - y);
    size += x * x;
  }
  return {std::sqrt(difference), std::sqrt(size)};
}

inline double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_GT(a.size(), 10000U);
  const auto [distance, norm] = distance_and_norm(a, b);
  return distance / norm;
}

// How far a metric may be from `expected`.
inline double tolerance(size_t iteration, const std::string& name, double expected) {
  // Later iterations start from weights that were summed in another order.
  if (iteration > 0) return 1e-5 * std::max(1.0, std::abs(expected));
  // At ratio 1 the whitened advantages, of size 1, cancel: the loss is what rounding leaves of them, about 1e-9.
  if (name == "actor/loss" || name == "actor/pg_loss" || name == "actor/ppo_kl") return 1e-6;
  return 1e-6 * std::abs(expected);
}

// Measured in training, where each rank sees its own rows.
inline bool of_training(const std::string& name) {
  return name.starts_with("actor/") || name.starts_with("critic/") || name.starts_with("mismatch/") ||
         name == "train/tokens";
}

inline void expect_near(const Metrics& one, const Metrics& shared) {
  ASSERT_EQ(one.size(), shared.size());
  for (size_t i = 0; i < one.size(); ++i) {
    size_t compared = 0;
    for (const auto& [name, value] : one[i].items()) {
      if (!of_training(name) && name != "response_length/mean") continue;
      const double expected = value;
      EXPECT_NEAR(shared[i].at(name).get<double>(), expected, tolerance(i, name, expected))
          << name << " of iteration " << i + 1;
      ++compared;
    }
    EXPECT_GT(compared, 10U);
  }
}

// Runs of several devices, beside those of one.
class NearRuns : public Walls {
 protected:
  static std::vector<std::string> with(std::vector<std::string> sets, const std::vector<std::string>& more) {
    sets.insert(sets.end(), more.begin(), more.end());
    return sets;
  }
  // The options of GRPO with a reference.
  static std::vector<std::string> one() { return {"algorithm.beta=0.1", "algorithm.loss_type=dapo"}; }
  // Trains with each worker a process.
  std::string train_apart(const std::string& name, const std::string& recipe, const std::vector<std::string>& sets) {
    recipe::TrainCall processes;
    processes.worker_command = {collimate_program(), "worker"};
    return train(name, recipe, with(sets, {"cluster=local-processes"}), processes);
  }
  // Two devices that all models share, with these layouts.
  static std::string placed(const std::string& layouts) {
    return "placement={version: 1, devices: {count: 2, kind: cpu}, groups: {all: {devices: [0, 1], models: [policy, "
           "policy_trainer, reference]}}, layouts: {" +
           layouts + "}}";
  }
  // Checks what is refused of an axis, whatever it is.
  void expect_axis_is_checked(const std::string& axis) {
    const auto error = [&](const std::vector<std::string>& sets) { return refusal("grpo", with(one(), sets)); };
    EXPECT_THAT(error({"devices=3", axis + "=2"}),
                testing::HasSubstr(fmt::format("[{}] expected a divisor of the 3 devices, got 2", axis)));
  }
  // Trains two iterations by `first`, then goes on by `then`; gives the model's bytes.
  std::string train_in_two(const std::string& name, const std::string& recipe, const std::vector<std::string>& first,
                           const std::vector<std::string>& then) {
    train(name, recipe, with(first, {"run.iterations=2"}));
    return train(name, recipe, then);
  }
  // Trains `name`, and once more in two parts on the same devices, with the same bits.
  void expect_goes_on(const std::string& name, const std::string& recipe, const std::vector<std::string>& sets) {
    const std::string whole = train(name, recipe, sets), cut = name + "-cut";
    EXPECT_TRUE(whole == train_in_two(cut, recipe, sets, sets)) << name;
    EXPECT_EQ(lasting_metrics(directory(name)), lasting_metrics(directory(cut))) << name;
  }
  std::string refusal(const std::string& recipe, const std::vector<std::string>& sets) {
    return base::message_of<base::InputError>([&] { train("refused", recipe, sets); });
  }
  // Training sees the log-probs that generation drew by.
  void expect_no_mismatch(const std::string& name) {
    for (const auto& iteration : metrics_of(directory(name))) {
      EXPECT_GT(iteration.at("mismatch/tokens_compared").get<double>(), 0) << name;
      EXPECT_EQ(iteration.at("mismatch/logprob_abs_max"), 0) << name;
    }
  }
  void expect_same_run(const std::string& expected, const std::string& name) {
    EXPECT_EQ(lasting_metrics(directory(expected)), lasting_metrics(directory(name))) << name;
    EXPECT_TRUE(exported_weights(directory(expected)) == exported_weights(directory(name))) << name;
  }
  void expect_near_weights(const std::string& expected, const std::string& name) {
    EXPECT_LT(relative_distance(exported_weights(directory(expected)), exported_weights(directory(name))), 1e-5)
        << name;
  }
  void expect_near_run(const std::string& expected, const std::string& name) {
    expect_near_weights(expected, name);
    expect_near(metrics_of(directory(expected)), metrics_of(directory(name)));
  }
};

}  // namespace collimate::test
