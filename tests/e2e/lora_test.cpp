// GCC 12 sees an overlap in std::string's replace where there is none (GCC bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "collimate/host/core_pool.h"
#include "collimate/model/safetensors.h"
#include "collimate/model/weights.h"
#include "tests/e2e/wall_runs.h"

// Recipes that train adapters beside a model: one of random weights, or one that an SFT run has left.
namespace collimate::test {
namespace {

using Tensors = std::map<std::string, std::vector<float>>;

Tensors tensors_of(const std::string& file) {
  Tensors all;
  const model::SafetensorsFile read(file);
  for (const model::TensorEntry& entry : read.entries()) {
    auto& values = all[entry.name];
    values.resize(static_cast<size_t>(entry.count()));
    model::read_floats(entry, file, values);
  }
  return all;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, std::abs(double{a[i]} - b[i]));
  return most;
}

class Lora : public Walls {
 protected:
  // Adds adapters of rank 4.
  static std::vector<std::string> adapted(std::vector<std::string> sets) {
    for (const char* set : {"models.policy.lora.rank=4", "models.policy.lora.alpha=8", "train.learning_rate=1e-2"})
      sets.emplace_back(set);
    return sets;
  }
  // Trains adapters on the model that SFT has left in base/.
  std::vector<std::string> adapted_base(std::vector<std::string> sets) {
    if (!fs::exists(directory("base"))) train("base", "sft", {"train.learning_rate=1e-2"});
    sets.push_back("models.policy.path=" + directory("base") + "/model");
    sets.emplace_back("models.policy.from_scratch=false");
    return adapted(std::move(sets));
  }
  Tensors model_of(const std::string& name) const { return tensors_of(directory(name) + "/model/model.safetensors"); }
  Tensors adapters_of(const std::string& name) const {
    return tensors_of(directory(name) + "/model/adapter/adapter_model.safetensors");
  }
};

// GRPO samples with what it trains, adapters included: with several updates an iteration, recompute and a reference,
// which is the model without them.
TEST_F(Lora, GrpoSamplesAndTrainsTheSameValues) {
  for (const char* compute : {"float32", "bfloat16_dot"}) {
    train(compute, "grpo",
          adapted({fmt::format("models.policy.compute={}", compute), "algorithm.beta=0.04", "train.recompute=full",
                   "train.samples_per_update=8"}));
    const Metrics metrics = metrics_of(directory(compute));
    ASSERT_EQ(metrics.size(), 3U);
    for (const nlohmann::json& line : metrics) {
      EXPECT_EQ(line.at("mismatch/logprob_abs_max"), 0.0) << compute;
      EXPECT_GT(line.at("mismatch/tokens_compared").get<double>(), 0);
      EXPECT_GT(line.at("mismatch/tokens_checked").get<double>(), 0);
      EXPECT_EQ(line.at("staleness/max"), 0.0);
    }
    EXPECT_EQ(metrics[1].at("sync/version").get<int64_t>(), metrics[0].at("sync/version").get<int64_t>() + 2);
    EXPECT_GT(metrics.back().at("actor/kl_loss").get<double>(), 0);
  }
}

// With DoRA too, whose factors of rows both sides make anew after each update; also where ranks share the weights,
// whose matrices a rank has whole for a moment only.
TEST_F(Lora, DoraSamplesAndTrainsTheSameValues) {
  const std::vector<std::string> sets = adapted_base({"models.policy.lora.dora=true", "algorithm.beta=0.04"});
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), sets.begin(), sets.end());
    return more;
  };
  train("plain", "grpo", with({"train.recompute=full", "train.samples_per_update=8"}));
  train("rounded", "grpo", with({"models.policy.compute=bfloat16_dot"}));
  train("shared", "grpo", with({"devices=2", "zero=3"}));
  for (const char* name : {"plain", "rounded", "shared"})
    for (const nlohmann::json& line : metrics_of(directory(name))) {
      EXPECT_EQ(line.at("mismatch/logprob_abs_max"), 0.0) << name;
      EXPECT_GT(line.at("mismatch/tokens_compared").get<double>(), 0) << name;
    }
  int counted = 0;
  const auto memory = nlohmann::json::parse(read_text(directory("plain") + "/summary.json")).at("memory");
  for (const nlohmann::json& item : memory.at("workers").at(0).at("items")) {
    if (!item.at("item").get<std::string>().ends_with("/factors")) continue;
    EXPECT_LE(item.at("peak_bytes"), item.at("planned_bytes"));
    ++counted;
  }
  EXPECT_EQ(counted, 1);
}

// Rows of the model that it leaves have the lengths that its adapters have. These are trained on, or merged.
TEST_F(Lora, DorasLengthsAreThoseOfTheModelItLeaves) {
  train("first", "sft", adapted_base({"models.policy.lora.dora=true", "run.iterations=5"}));
  const Tensors adapters = adapters_of("first"), merged = model_of("first"), before = model_of("base");
  EXPECT_EQ(adapters.size(), 3 * 2 * 7U);
  const auto config = nlohmann::json::parse(read_text(directory("first") + "/model/adapter/adapter_config.json"));
  EXPECT_EQ(config.at("use_dora"), true);
  const std::string layer = "model.layers.0.mlp.up_proj";
  const std::vector<float>& lengths = adapters.at("base_model.model." + layer + ".lora_magnitude_vector");
  const std::vector<float>& weight = merged.at(layer + ".weight");
  EXPECT_GT(largest_difference(weight, before.at(layer + ".weight")), 1e-3);
  const size_t width = weight.size() / lengths.size();
  for (size_t r = 0; r < lengths.size(); ++r) {
    double squares = 0;
    for (size_t c = 0; c < width; ++c) squares += std::pow(double{weight[r * width + c]}, 2);
    EXPECT_NEAR(std::sqrt(squares), std::abs(lengths[r]), 1e-5) << r;
  }
  const std::vector<std::string> on = {"models.policy.path=" + directory("first") + "/model/adapter",
                                       "models.policy.from_scratch=false", "run.iterations=1", "train.learning_rate=0"};
  auto same = on;
  same.emplace_back("models.policy.lora.rank=4");
  train("same", "sft", same);
  EXPECT_EQ(adapters_of("same"), adapters);
  train("merged", "sft", on);
  EXPECT_EQ(model_of("merged"), merged);
}

// Before the first update adapters add nothing, not a bit; the reference stays there.
TEST_F(Lora, BeginsAsItsReference) {
  train("run", "grpo", adapted({"algorithm.beta=0.04"}));
  const Metrics metrics = metrics_of(directory("run"));
  EXPECT_EQ(metrics.front().at("actor/kl_loss"), 0.0);
  EXPECT_GT(metrics.back().at("actor/kl_loss").get<double>(), 0);
}

// The model that it leaves is that of before with scale · B A added to each of its linear layers, and nothing else.
TEST_F(Lora, SftLeavesTheModelMergedAndTheAdapterBeside) {
  train("run", "sft", adapted_base({"run.iterations=10"}));
  const Metrics metrics = metrics_of(directory("run"));
  EXPECT_LT(metrics.back().at("actor/loss").get<double>(), metrics.front().at("actor/loss").get<double>());
  Tensors before = model_of("base"), after = model_of("run"), adapters = adapters_of("run");
  EXPECT_EQ(adapters.size(), 2 * 2 * 7U);
  ASSERT_EQ(before.size(), after.size());
  int merged = 0;
  for (auto& [name, values] : before) {
    const auto module = fmt::format("base_model.model.{}", name.substr(0, name.rfind('.')));
    if (!adapters.contains(module + ".lora_B.weight")) {
      EXPECT_EQ(values, after.at(name)) << name << " is frozen";
      continue;
    }
    const auto &a = adapters.at(module + ".lora_A.weight"), &b = adapters.at(module + ".lora_B.weight");
    const size_t columns = a.size() / 4, rows = b.size() / 4;
    std::vector<float> sum = values;
    for (size_t i = 0; i < rows * columns; ++i)
      for (size_t k = 0; k < 4; ++k) sum[i] += 2 * b[i / columns * 4 + k] * a[k * columns + i % columns];
    EXPECT_LT(largest_difference(sum, after.at(name)), 1e-5) << name;
    EXPECT_GT(largest_difference(values, after.at(name)), 1e-3) << name;
    ++merged;
  }
  EXPECT_EQ(merged, 14);
  const auto config = nlohmann::json::parse(read_text(directory("run") + "/model/adapter/adapter_config.json"));
  EXPECT_EQ(config.at("base_model_name_or_path"), directory("base") + "/model");
}

// Checkpoints hold adapters and their moments, no weights of the model.
TEST_F(Lora, CheckpointsHoldAdaptersAlone) {
  train("run", "sft", adapted({}));
  std::set<std::string> arrays;
  for (const auto& [file, bytes] : state_of(directory("run"), "policy", 3))
    if (file.ends_with(".bin")) arrays.insert(file);
  EXPECT_THAT(arrays, testing::ElementsAre("adamw.first.4.bin", "adamw.second.4.bin", "weights.4.bin"));
}

// Generation elsewhere than training gets the adapters by the weight link, which compares the sums of all values.
TEST_F(Lora, PlacementChangesNothing) {
  train("together", "grpo", adapted({}));
  train("apart", "grpo",
        adapted({"placement={version: 1, devices: {count: 2, kind: cpu}, groups: {rollout: {devices: [0], models: "
                 "[policy]}, training: {devices: [1], models: [policy_trainer]}}}"}));
  EXPECT_EQ(model_of("apart"), model_of("together"));
  EXPECT_EQ(adapters_of("apart"), adapters_of("together"));
  for (const nlohmann::json& line : metrics_of(directory("apart"))) EXPECT_EQ(line.at("mismatch/logprob_abs_max"), 0.0);
}

// Two ranks sum the gradients of adapters; equal but for the order of sums.
TEST_F(Lora, TwoRanksTrainAsOne) {
  const std::vector<std::string> sets = {"algorithm.loss_type=dapo", "train.adam_epsilon=1e-4", "run.iterations=1"};
  std::vector<std::string> two = sets;
  two.emplace_back(
      "placement={version: 1, devices: {count: 2, kind: cpu}, groups: {all: {devices: [0, 1], models: [policy, "
      "policy_trainer]}}, layouts: {policy_trainer: {train: {dp: 2}}}}");
  train("one", "grpo", adapted(sets));
  train("two", "grpo", adapted(two));
  const Tensors one = adapters_of("one"), shared = adapters_of("two");
  for (const auto& [name, values] : one) {
    EXPECT_LT(largest_difference(values, shared.at(name)), 1e-5) << name;
    EXPECT_GT(largest_difference(values, std::vector<float>(values.size(), 0)), 1e-4) << name;
  }
  for (const nlohmann::json& line : metrics_of(directory("two"))) EXPECT_EQ(line.at("mismatch/logprob_abs_max"), 0.0);
}

// Reward models and value models train their head beside the adapters: it begins at zero and would pass nothing down.
TEST_F(Lora, HeadsAreTrainedBesideAdapters) {
  train("judge", "reward", adapted({"run.iterations=8"}));
  EXPECT_TRUE(adapters_of("judge").contains("base_model.model.score.weight"));
  const Metrics judged = metrics_of(directory("judge"));
  EXPECT_LT(judged.back().at("actor/loss").get<double>(), judged.front().at("actor/loss").get<double>());
  train("ppo", "ppo", adapted({"models.reward={path: " + directory("judge") + "/model}", "reward=null"}));
  const Metrics metrics = metrics_of(directory("ppo"));
  for (const nlohmann::json& line : metrics) {
    EXPECT_EQ(line.at("mismatch/logprob_abs_max"), 0.0);
    EXPECT_GT(line.at("critic/grad_norm").get<double>(), 0);
  }
  const auto value = state_of(directory("ppo"), "value", 3);
  EXPECT_TRUE(value.contains("weights.3.bin") && value.contains("weights.4.bin"));
  EXPECT_FALSE(value.contains("weights.1.bin"));
}

TEST_F(Lora, DpoComparesWithTheModelItBeganFrom) {
  train("run", "dpo", adapted({"algorithm.beta=0.1", "run.iterations=6"}));
  const Metrics metrics = metrics_of(directory("run"));
  EXPECT_NEAR(metrics.front().at("actor/loss").get<double>(), std::log(2.0), 1e-5);
  EXPECT_LT(metrics.back().at("actor/loss").get<double>(), metrics.front().at("actor/loss").get<double>());
}

// Adapters are a start: merged where all weights are trained, and as they are where adapters are.
TEST_F(Lora, BeginsFromAdapters) {
  train("first", "sft", adapted_base({"run.iterations=10"}));
  const std::string adapters = "models.policy.path=" + directory("first") + "/model/adapter";
  const std::vector<std::string> from = {adapters, "models.policy.from_scratch=false", "run.iterations=1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), from.begin(), from.end());
    return more;
  };
  train("merged", "sft", with({"train.learning_rate=0"}));
  EXPECT_EQ(model_of("merged"), model_of("first"));
  train("same", "sft", with({"train.learning_rate=0", "models.policy.lora.rank=4"}));
  EXPECT_EQ(adapters_of("same"), adapters_of("first"));
  EXPECT_EQ(model_of("same"), model_of("first"));
  train("on", "grpo", with({"train.learning_rate=1e-2", "models.policy.lora.rank=4", "algorithm.beta=0.04"}));
  EXPECT_NE(adapters_of("on"), adapters_of("first"));
  const Metrics metrics = metrics_of(directory("on"));
  EXPECT_EQ(metrics.front().at("mismatch/logprob_abs_max"), 0.0);
  EXPECT_LT(metrics.front().at("actor/kl_loss").get<double>(), 1e-9) << "of adapters beside the weights and in them";
  for (const char* name : {"same", "on"}) {
    const auto config = nlohmann::json::parse(read_text(directory(name) + "/model/adapter/adapter_config.json"));
    EXPECT_EQ(config.at("base_model_name_or_path"), directory("base") + "/model");
    EXPECT_EQ(config.at("lora_alpha"), 8);
  }
  const auto inputs = nlohmann::json::parse(read_text(directory("on") + "/models.json"));
  for (const char* file : {"first/model/adapter/adapter_model.safetensors", "first/model/adapter/adapter_config.json",
                           "base/model/model.safetensors", "base/model/config.json"})
    EXPECT_TRUE(inputs.contains(directory(file))) << file;
}

// Policy, reference and value model are one copy of what none of them changes. A run whose models come from copies of
// the directory, which have weights of their own, learns the same to the last bit, in more memory.
TEST_F(Lora, ModelsOfOneDirectoryShareWhatNoneChanges) {
  const std::vector<std::string> sets = adapted_base({"algorithm.beta=0.04", "models.policy.compute=bfloat16_dot"});
  fs::copy(directory("base") + "/model", directory("first-copy"));
  fs::copy(directory("base") + "/model", directory("second-copy"));
  const auto section = [&](const std::string& name) {
    return fmt::format("{{path: {}, compute: bfloat16_dot, from_scratch: false{}}}", directory(name),
                       name == "first-copy" ? "" : ", lora: {rank: 4, alpha: 8}");
  };
  auto apart = sets;
  for (const auto& [model, copy] : {std::pair("reference", "first-copy"), {"value", "second-copy"}})
    apart.push_back(fmt::format("models.{}={}", model, section(copy)));
  EXPECT_EQ(train("shared", "ppo", sets), train("apart", "ppo", apart));
  std::map<std::string, std::map<std::string, int64_t>> bytes;  // by run and item
  for (const std::string run : {"shared", "apart"}) {
    const auto memory = nlohmann::json::parse(read_text(directory(run) + "/summary.json")).at("memory");
    for (const auto& item : memory.at("workers").at(0).at("items")) {
      const auto name = item.at("item").get<std::string>();
      bytes[run][name] = item.at("peak_bytes");
      if (!name.ends_with("/values") && !name.ends_with("/panels")) continue;
      EXPECT_EQ(item.at("planned_bytes"), item.at("peak_bytes")) << run << " " << name;
    }
  }
  const int64_t one = bytes.at("apart").at("reference/values");
  EXPECT_EQ(bytes.at("shared").at("policy+reference+value/values"), one);
  EXPECT_FALSE(bytes.at("shared").contains("reference/values"));
  EXPECT_FALSE(bytes.at("apart").contains("policy+reference+value/values"));
  const auto of_weights = [&](const std::string& run) {
    int64_t sum = 0;
    for (const auto& [name, count] : bytes.at(run))
      if (name.ends_with("/values") || name.ends_with("/panels")) sum += count;
    return static_cast<double>(sum);
  };
  EXPECT_LT(of_weights("shared"), 0.5 * of_weights("apart"));
}

TEST_F(Lora, AdaptersThatAreTrainedOnKeepTheirRankAndScale) {
  train("first", "sft", adapted_base({"run.iterations=1"}));
  const std::string adapter = directory("first") + "/model/adapter";
  const auto refused = [&](const std::vector<std::string>& more) -> std::string {
    std::vector<std::string> sets = {"models.policy.path=" + adapter, "models.policy.from_scratch=false"};
    sets.insert(sets.end(), more.begin(), more.end());
    try {
      train("refused", "sft", sets);
    } catch (const base::InputError& error) {
      return error.what();
    }
    return "trained";
  };
  EXPECT_EQ(refused({"models.policy.lora.rank=8"}),
            "[policy lora.rank] expected 4, the rank of the adapters in " + adapter +
                ", which are trained on, got 8; try that rank, or beginning from the merged model");
  EXPECT_EQ(refused({"models.policy.lora.rank=4", "models.policy.lora.alpha=3"}),
            "[policy lora] expected rank, dropout and b_rate_ratio alone beside the adapters in " + adapter +
                ", which say the rest, got alpha, rslora, targets, modules_to_save or dora; try leaving them out");
  EXPECT_EQ(refused({"models.policy.from_scratch=true"}),
            "[policy from_scratch] expected false beside adapters, got true; try the path of the model alone");
}

// The embedding and the head are trained whole beside adapters, and sampled as they are trained.
TEST_F(Lora, ModulesAreTrainedWhole) {
  train("run", "grpo",
        adapted_base({"models.policy.lora.modules_to_save=[embed_tokens, lm_head]", "algorithm.beta=0.04"}));
  for (const nlohmann::json& line : metrics_of(directory("run"))) EXPECT_EQ(line.at("mismatch/logprob_abs_max"), 0.0);
  const Tensors adapters = adapters_of("run"), before = model_of("base");
  for (const std::string name : {"model.embed_tokens.weight", "lm_head.weight"}) {
    if (!before.contains(name)) continue;
    EXPECT_NE(adapters.at("base_model.model." + name), before.at(name)) << name;
    EXPECT_EQ(model_of("run").at(name), adapters.at("base_model.model." + name));
  }
  EXPECT_EQ(model_of("run").at("model.norm.weight"), before.at("model.norm.weight"));
}

// A chosen few of the layers; what the model leaves reads like any other.
TEST_F(Lora, TargetsAreChosen) {
  train("run", "sft", adapted_base({"models.policy.lora.targets=[q_proj, down_proj]"}));
  EXPECT_EQ(adapters_of("run").size(), 2 * 2 * 2U);
  host::CorePool pool(1);
  EXPECT_EQ(model::load_huggingface(directory("run") + "/model", "lm", {}, {&pool})->own_params(),
            model_of("base").size());
}

}  // namespace
}  // namespace collimate::test
