#include "collimate/plan/cost/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "collimate/tensor/ops/attention.h"
#include "tests/fault/cli_support.h"
#include "tests/support/small_families.h"

namespace collimate::test {
namespace {

constexpr double kMebi = 1 << 20;

// GRPO with a reference on a model of 2.7M parameters whose completions all have the greatest length: it and its
// tokenizer have no end of sequence.
class Memory : public testing::Test {
 protected:
  void SetUp() override {
    write_small_task(scratch_.path());
    text::CharacterVocabulary vocabulary{.specials = {"<pad>", "<unk>"}, .pad = "<pad>", .unk = "<unk>"};
    for (char c = '0'; c <= '9'; ++c) vocabulary.tokens.emplace_back(1, c);
    vocabulary.tokens.emplace_back("=");
    text::CharacterTokenizer(vocabulary).save(scratch_ / "start");
    write_text(scratch_ / "start/config.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
      "vocab_size": 13, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4,
      "head_dim": 64, "intermediate_size": 512, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
      "rope_theta": 10000.0, "tie_word_embeddings": false, "pad_token_id": 0, "bos_token_id": null,
      "eos_token_id": null, "hidden_act": "silu"})");
    write_text(scratch_ / "run.yaml",
               fmt::format("recipe: grpo\n"
                           "models: {{policy: {{path: {0}/start, from_scratch: true, initializer_std: 0.02}}}}\n"
                           "data: {{train: {0}/problems.jsonl}}\n"
                           "run: {{iterations: 2, seed: 7, threads: 1}}\n"
                           "train: {{learning_rate: 1e-5}}\n"
                           "algorithm: {{beta: 0.04}}\n"
                           "reward: [{{rule: regex, pattern: \"^[0-4]\"}}]\n"
                           "rollout: {{prompts_per_iteration: 4, samples_per_prompt: 4, prompt_tokens: 4, "
                           "completion_tokens: 28, cache_blocks: 32}}\n",
                           scratch_.path().string()));
  }
  nlohmann::json memory_of(const std::vector<std::string>& sets) {
    std::vector<std::string> words = {"train", scratch_ / "run.yaml", "--output", scratch_ / "run", "--resume",
                                      "never"};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    fs::remove_all(scratch_ / "run");
    const host::CommandResult result = run_collimate(words);
    EXPECT_TRUE(result.status.ok()) << result.errors;
    return nlohmann::json::parse(read_text(scratch_ / "run/summary.json")).at("memory");
  }

  double cache_bytes(const std::vector<std::string>& sets) { return bytes_of("kv_cache", sets); }
  // Bytes of an item that such a run took, as many as were planned; 0 without it.
  double bytes_of(const std::string& name, const std::vector<std::string>& sets) {
    const nlohmann::json memory = memory_of(sets);
    for (const nlohmann::json& item : memory.at("workers").at(0).at("items"))
      if (item.at("item") == name) {
        EXPECT_EQ(item.at("planned_bytes"), item.at("peak_bytes")) << fmt::format("{}", fmt::join(sets, " "));
        return item.at("peak_bytes").get<double>();
      }
    return 0.0;
  }

  Scratch scratch_{"memory"};
};

std::string table(const nlohmann::json& worker) {
  std::string text;
  for (const nlohmann::json& item : worker.at("items"))
    text += fmt::format("{:28} planned {:8.2f} MiB, peak {:8.2f} MiB\n", item.at("item").get<std::string>(),
                        item.at("planned_bytes").get<double>() / kMebi, item.at("peak_bytes").get<double>() / kMebi);
  return text;
}

void expect_near(double got, double expected, const std::string& what) {
  EXPECT_NEAR(got / expected, 1.0, 0.1) << what;
}

// The sum is computed from shapes and limits before anything is allocated. It holds masters, gradients, optimizer
// moments and panels of the trained policy, values and panels of the reference, the key-value cache, the arenas of the
// largest micro-batch, rows and ATen's temporaries, and kernels' working memory.
TEST_F(Memory, OfARunIsWithinATenthOfTheItemisedSum) {
  for (const std::string recompute : {"none", "full"}) {
    const nlohmann::json memory = memory_of({"train.recompute=" + recompute});
    const nlohmann::json& device = memory.at("workers").at(0);
    const double planned = device.at("planned_bytes"), peak = device.at("peak_bytes");
    EXPECT_GT(planned, 80 * kMebi);
    expect_near(peak, planned, recompute + "\n" + table(device));
    for (const nlohmann::json& item : device.at("items")) {
      if (item.at("planned_bytes").get<double>() > planned / 40)  // smaller ones, as kernels' scratch, are bounds
        expect_near(item.at("peak_bytes"), item.at("planned_bytes"), item.at("item").get<std::string>());
      if (item.at("item") == "scratch") {
        EXPECT_GE(item.at("planned_bytes").get<double>(), item.at("peak_bytes").get<double>()) << table(device);
      }
    }
    const double grown = memory.at("process_peak_bytes").get<double>() - memory.at("process_start_bytes").get<double>();
    expect_near(grown, memory.at("planned_bytes"),
                fmt::format("the process grew by {:.1f} MiB; {}\n{}", grown / kMebi, recompute, table(device)));
  }
}

TEST_F(Memory, OfEachPhaseIsInTheMetricsAndWithinTheRuns) {
  const double most = memory_of({}).at("workers").at(0).at("peak_bytes");
  for (const std::string& line : lines_of(scratch_ / "run/metrics.jsonl")) {
    const auto metrics = nlohmann::json::parse(line);
    double largest = 0;
    for (const char* phase : {"gen", "ref", "update_actor"}) {
      const double bytes = metrics.at(std::string("memory/peak_bytes/") + phase);
      EXPECT_GT(bytes, most / 4) << phase;
      EXPECT_LE(bytes, most) << phase;
      largest = std::max(largest, bytes);
    }
    EXPECT_EQ(largest, metrics.at("memory/peak_bytes/update_actor").get<double>());
  }
}

// The allocator counted them: the reference is of the policy's shape and takes its values and panels once, and no item
// of any other name.
TEST_F(Memory, AFrozenModelTakesItsValuesAndPanelsAlone) {
  const nlohmann::json memory = memory_of({});
  std::map<std::string, int64_t> taken;
  std::set<std::string> of_reference;
  for (const nlohmann::json& item : memory.at("workers").at(0).at("items")) {
    const std::string name = item.at("item");
    taken[name] = item.at("peak_bytes");
    if (name.starts_with("reference/")) of_reference.insert(name);
  }
  EXPECT_EQ(of_reference, (std::set<std::string>{"reference/panels", "reference/values", "reference/workspace"}));
  const int64_t values = taken["policy/master"];
  EXPECT_GT(values, 8 * kMebi);
  EXPECT_EQ(taken["policy/gradient"], values);
  EXPECT_EQ(taken["policy/optimizer"], 2 * values);
  EXPECT_EQ(taken["reference/values"], values);
  EXPECT_EQ(taken["reference/panels"], taken["policy/panels"]);
  EXPECT_LT(taken["reference/panels"], 2 * values);
}

// 256 bytes of a token's keys and values become 64, and with int8 4 of a scale; sizes are rounded up to classes.
TEST_F(Memory, ACacheOfOneByteTakesAboutAQuarter) {
  const auto cache = [&](const std::string& type) { return cache_bytes({"rollout.kv_cache_dtype=" + type}); };
  const double whole = cache("auto");
  EXPECT_NEAR(cache("fp8") / whole, 64.0 / 256, 0.03);
  EXPECT_NEAR(cache("int8") / whole, 68.0 / 256, 0.03);
}

// Two routers choose two experts each for every token that the cache has room for, in two bytes each.
TEST_F(Memory, OfRecordedRoutesIsBesideTheCache) {
  write_small_model_of("mixtral", scratch_ / "start");
  const auto routes = [&](const std::string& replay) {
    return bytes_of("routed_experts", {"rollout.cache_blocks=320", "train.router_replay=" + replay});
  };
  EXPECT_EQ(routes("none"), 0.0);
  for (const char* replay : {"compare", "rollout"})
    EXPECT_EQ(routes(replay), static_cast<double>(tensor::allocated_bytes(320 * tensor::KvLayout::kBlockTokens * 8)));
}

// The trained model answers prompts in the samples of an SFT run; its cache is of the type that the model computes in.
TEST_F(Memory, OfTheCacheThatAnswersFollowsTheModelsType) {
  write_text(scratch_ / "run.yaml", small_config("sft", scratch_.path()));
  const auto cache = [&](const std::string& type) {
    return cache_bytes({"models.policy.from_scratch=true", "models.policy.compute=" + type});
  };
  EXPECT_NEAR(cache("bfloat16") / cache("float32"), 0.5, 0.03);
}

TEST_F(Memory, APolicyApartFromItsTrainerHasNoGradientOrOptimizer) {
  const nlohmann::json memory =
      memory_of({"placement={version: 1, devices: {count: 2, kind: cpu}, "
                 "groups: {training: {devices: [0], models: [policy_trainer, reference]}, "
                 "generation: {devices: [1], models: [policy]}}}"});
  const auto has = [&](size_t worker, const std::string& item) {
    const nlohmann::json& items = memory.at("workers").at(worker).at("items");
    return std::any_of(items.begin(), items.end(), [&](const nlohmann::json& one) { return one.at("item") == item; });
  };
  for (const char* item : {"policy/gradient", "policy/optimizer"}) {
    EXPECT_TRUE(has(0, item)) << item;
    EXPECT_FALSE(has(1, item)) << item;
  }
  EXPECT_TRUE(has(1, "policy/values") && has(1, "policy/panels"));
  const nlohmann::json& apart = memory.at("workers").at(1);
  expect_near(apart.at("peak_bytes"), apart.at("planned_bytes"), table(apart));
}

// The planner says this of the same run before it starts: 16 rows of 4 + 28 tokens in one update, micro-batches of
// 2,048 tokens, keys and values of 32 blocks. Kernels' working memory and rows are its workspace, as shipped.
TEST_F(Memory, IsWithinTwiceThePlannersBoundAndNotAboveIt) {
  namespace plan = collimate::plan;
  plan::Job job{
      shape::find_outline(scratch_ / "start"), plan::Work::kTrain, true, plan::DeviceKinds().find("cpu"), 1, 1, {}};
  job.load = {16, plan::Lengths::fixed(4), plan::Lengths::fixed(28), 1};
  const plan::Constants constants = plan::constants_of("");
  for (const bool recompute : {false, true}) {
    plan::Execution how;
    how.layout.recompute = recompute;
    job.work = plan::Work::kTrain;
    const plan::MemoryBound trains = plan::memory_of(job, how, constants);
    job.work = plan::Work::kScore;
    const plan::MemoryBound reference = plan::memory_of(job, {}, constants);
    job.work = plan::Work::kGenerate;
    const plan::MemoryBound generates = plan::memory_of(job, {}, constants, 16);
    const double bound = trains.resident_bytes() + reference.resident_bytes() +
                         std::max({trains.transient_bytes(), reference.transient_bytes(), generates.transient_bytes()});
    const nlohmann::json device =
        memory_of({std::string("train.recompute=") + (recompute ? "full" : "none")}).at("workers").at(0);
    const double peak = device.at("peak_bytes");
    EXPECT_LE(peak, bound) << table(device);
    EXPECT_GE(2 * peak, bound) << table(device);
  }
}

TEST_F(Memory, ABudgetThatIsTooSmallNamesTheItems) {
  const host::CommandResult result =
      run_collimate({"train", scratch_ / "run.yaml", "--output", scratch_ / "small", "--set", "run.memory_budget=40"});
  EXPECT_EQ(result.status.code, 2);
  const std::string line = last_line(result.errors);
  EXPECT_TRUE(line.starts_with("[memory of device 0] expected at most 40 MiB (run.memory_budget), got a plan of "))
      << line;
  EXPECT_NE(line.find("policy: activations kept for the backward pass "), std::string::npos) << line;
  EXPECT_NE(line.find("policy: optimizer state (two moments) "), std::string::npos) << line;
  EXPECT_NE(line.find("); try run.memory_budget: "), std::string::npos) << line;
  EXPECT_TRUE(line.ends_with(", a smaller train.micro_batch_tokens or fewer rollout.cache_blocks")) << line;
  EXPECT_FALSE(fs::exists(scratch_ / "small"));
  EXPECT_LT(memory_of({"run.memory_budget=200"}).at("workers").at(0).at("peak_bytes").get<double>(), 200 * kMebi);
}

}  // namespace
}  // namespace collimate::test
