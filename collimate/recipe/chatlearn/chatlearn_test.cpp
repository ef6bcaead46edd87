#include "collimate/recipe/chatlearn/chatlearn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/recipe/chatlearn/rows.h"
#include "collimate/recipe/config.h"
#include "tests/support/base/error_of.h"
#include "tests/support/base/temporary_directory.h"

namespace collimate::recipe {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

class ChatLearn : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path(name)) << text;
    return folder_.path(name);
  }
  static json made(const std::filesystem::path& path) { return base::to_json(from_chatlearn(path).root); }

  base::TemporaryDirectory folder_;
};

constexpr const char* kRlhfFile = R"(runtime_env:
  platform: DLC
models:
  policy:
    model_config_file: policy.yaml
    num_gpu: 8
    trainable: False
  reference:
    model_config_file: policy.yaml
    num_gpu: 8
  reward:
    load: rewards/start
    num_gpu: 4
  value:
    load: rewards/start
    num_gpu: 4
  ppo_policy:
    model_config_file: trained.yaml
    num_gpu: 8
    trainable: True
  ppo_value:
    load: rewards/start
    num_gpu: 8
    trainable: True
    args_dict: {lr: 4.0e-6}
runtime:
  colocation:
    - policy,ppo_policy,reward,reference,value,ppo_value
  num_episode: 30
  sample_per_episode: 64
  num_training_epoch: 2
  train_global_batch_size: 16
  train_micro_batch_size: 4
  data_path: prompts.jsonl
  save_episode_interval: 10
  nsys: False
  coalesced_buffer_mb: 100
)";
constexpr const char* kPolicyFile = R"(includes: [base.yaml]
load: models/start
max_new_tokens: 128
seq_length: 384
temperature: 0.7
top_k: -1
stop_token_list: "<a>;<b>"
)";
constexpr const char* kTrainedFile = R"(load: models/trained
trainer_engine: rlhf
lr: 1.0e-6
min_lr: 1.0e-7
lr_decay_style: cosine
cliprange: 0.1
fix_kl_coef: False
target: 6
horizon: 10000
nobody_knows: 3
)";

TEST_F(ChatLearn, PpoWithArgumentsInFilesOfTheirOwn) {
  write("base.yaml", "temperature: 1.5\ntop_p: 0.9\n");
  write("policy.yaml", kPolicyFile);
  write("trained.yaml", kTrainedFile);
  const json config = made(write("rlhf.yaml", kRlhfFile));
  EXPECT_EQ(config.at("recipe"), "ppo");
  EXPECT_EQ(config.at("run").at("iterations"), 30);
  EXPECT_EQ(config.at("run").at("save_every"), 10);
  EXPECT_EQ(config.at("rollout").at("prompts_per_iteration"), 64);
  EXPECT_EQ(config.at("rollout").at("prompt_tokens"), 256);
  EXPECT_EQ(config.at("rollout").at("completion_tokens"), 128);
  EXPECT_EQ(config.at("rollout").at("temperature"), 0.7);  // of the file itself, not of what it includes
  EXPECT_EQ(config.at("rollout").at("top_p"), 0.9);
  EXPECT_EQ(config.at("rollout").at("top_k"), 0);
  EXPECT_EQ(config.at("rollout").at("stop"), json({"<a>", "<b>"}));
  EXPECT_EQ(config.at("train").at("samples_per_update"), 16);
  EXPECT_EQ(config.at("train").at("ppo_epochs"), 2);
  EXPECT_EQ(config.at("train").at("learning_rate"), 1e-6);
  EXPECT_NEAR(config.at("train").at("lr_minimum_ratio").get<double>(), 0.1, 1e-12);
  EXPECT_EQ(config.at("train").at("lr_schedule"), "cosine_with_min");
  EXPECT_EQ(config.at("train").at("value_learning_rate"), 4e-6);
  EXPECT_EQ(config.at("algorithm").at("epsilon"), 0.1);
  EXPECT_EQ(config.at("algorithm").at("kl_target"), 6);
  EXPECT_EQ(config.at("algorithm").at("kl_horizon"), 10000);
  EXPECT_EQ(config.at("models").at("policy").at("path"), "models/trained");  // not where generation loads from
  EXPECT_EQ(config.at("models").at("reference").at("path"), "models/start");
  EXPECT_EQ(config.at("models").at("reward").at("path"), "rewards/start");
}

// Reward and value, of four devices each, sit side by side on the eight of the others; the value model that trains
// decides where ours is.
TEST_F(ChatLearn, SmallerModelsOfAGroupSitSideBySide) {
  write("base.yaml", "{}\n");
  write("policy.yaml", kPolicyFile);
  write("trained.yaml", kTrainedFile);
  const auto groups = [&](const std::string& text) {
    const json placement = made(write("rlhf.yaml", text)).at("placement");
    EXPECT_EQ(placement.at("devices").at("count"), 8);
    return placement.at("groups");
  };
  const std::string text = kRlhfFile, large = "start\n    num_gpu: 8";
  const json all = groups(text);
  EXPECT_EQ(all.at("policy").at("models"), json({"policy", "policy_trainer", "reference", "value"}));
  EXPECT_EQ(all.at("reward").at("devices"), json({0, 1, 2, 3}));
  const json beside = groups(std::string(text).replace(text.find(large), large.size(), "start\n    num_gpu: 4"));
  EXPECT_EQ(beside.at("value").at("devices"), json({0, 1, 2, 3}));
  EXPECT_EQ(beside.at("reward").at("devices"), json({4, 5, 6, 7}));
}

TEST_F(ChatLearn, EveryKeyIsShownWithWhatItComesTo) {
  write("base.yaml", "{}\n");
  write("policy.yaml", kPolicyFile);
  write("trained.yaml", kTrainedFile);
  const std::vector<std::string> lines = chatlearn_lines(write("rlhf.yaml", kRlhfFile), {});
  EXPECT_THAT(lines, Contains(HasSubstr("rlhf.yaml:29 runtime.num_episode: 30 -> run.iterations: 30")));
  EXPECT_THAT(lines, Contains(HasSubstr("policy.max_new_tokens: 128 -> rollout.completion_tokens: 128")));
  EXPECT_THAT(lines, Contains(HasSubstr("runtime.nsys: false -> nothing")));
  EXPECT_THAT(lines, Contains(testing::AllOf(testing::StartsWith("warning: "), HasSubstr("runtime.coalesced_buffer_mb"),
                                             HasSubstr("weights move as the two layouts need"))));
  EXPECT_THAT(lines, Contains(testing::AllOf(testing::StartsWith("warning: "), HasSubstr("ppo_policy.nobody_knows: 3"),
                                             HasSubstr("no key of ChatLearn's"))));
  EXPECT_THAT(lines, Contains(testing::AllOf(testing::StartsWith("warning: "), HasSubstr("reference.temperature: 0.7"),
                                             HasSubstr("read of other models alone"))));
  EXPECT_EQ(chatlearn_lines(write("ours.yaml", "recipe: sft\n"), {}), std::vector<std::string>());
}

constexpr const char* kGrpoFile = R"(env_args: {platform: DLC}
runtime_args:
  train_backend: fsdp
  data_path: a.jsonl,b.jsonl
  data_ratio: [3, 1]
  num_episode: 7
  sample_per_episode: 64
  num_inference_per_prompt: 8
  train_global_batch_size: 32
models:
  policy_trainer:
    num_gpu: 2
    trainable: true
    load: models/start
    pos_clip_ratio: 0.28
    optimizer: {lr: 2.0e-6, clip_grad: 0.5}
  ref_policy: {num_gpu: 2, load: models/start}
  policy:
    num_gpu: 2
    tensor_model_parallel_size: 1
    max_response_tokens_length: 64
  reward: {num_cpu: 2}
)";

TEST_F(ChatLearn, GrpoOfTheMainBranch) {
  const json config = made(write("grpo.yaml", kGrpoFile));
  EXPECT_EQ(config.at("recipe"), "grpo");
  EXPECT_EQ(config.at("preset"), "chatlearn-grpo");
  EXPECT_EQ(config.at("rollout").at("prompts_per_iteration"), 8);
  EXPECT_EQ(config.at("rollout").at("samples_per_prompt"), 8);
  EXPECT_EQ(config.at("rollout").at("completion_tokens"), 64);
  EXPECT_EQ(config.at("train").at("samples_per_update"), 32);
  EXPECT_EQ(config.at("train").at("max_grad_norm"), 0.5);
  EXPECT_EQ(config.at("algorithm").at("epsilon_high"), 0.28);
  EXPECT_EQ(config.at("data").at("train"),
            json({{{"path", "a.jsonl"}, {"weight", 3.0}}, {{"path", "b.jsonl"}, {"weight", 1.0}}}));
}

TEST_F(ChatLearn, PartialRolloutsAreRounds) {
  const auto rollout = [&](const std::string& keys) {
    std::string text = kGrpoFile;
    text.insert(text.find("  data_path"), keys);
    return made(write("grpo.yaml", text)).at("rollout");
  };
  const json usual = rollout("  use_partial_rollout: true\n");
  EXPECT_EQ(usual.at("round_shares"), json({0.5, 0.5}));
  EXPECT_FALSE(usual.contains("round_min_samples")) << "17 of 8 samples";
  const json own = rollout(
      "  use_partial_rollout: true\n  max_rollout_round: 3\n  rollout_ratio: [0.25, 0.25, 0.5]\n"
      "  mini_response_per_prompt: 3\n");
  EXPECT_EQ(own.at("round_shares"), json({0.25, 0.25, 0.5}));
  EXPECT_EQ(own.at("round_min_samples"), 4);
  EXPECT_FALSE(rollout("  rollout_ratio: [0.25, 0.75]\n  mini_response_per_prompt: 3\n").contains("round_shares"));
}

TEST_F(ChatLearn, SequenceParallelismOfUlyssesExchangesHeads) {
  const auto trainer_of = [&](const std::string& key) {
    std::string text = kGrpoFile;
    text.insert(text.find("    pos_clip_ratio"), "    " + key + ": 2\n");
    return made(write("sequence.yaml", text)).at("placement").at("layouts").at("policy_trainer").at("train");
  };
  EXPECT_EQ(trainer_of("ulysses_sequence_parallel_size").at("cp_kind"), "ulysses");
  EXPECT_EQ(trainer_of("ulysses_sequence_parallel_size").at("cp"), 2);
  EXPECT_FALSE(trainer_of("context_parallel_size").contains("cp_kind"));
}

// A bound that few runs have is read all the same; what the recipe does not read goes, and is said.
TEST_F(ChatLearn, OnlyWhatTheRecipeDoesNotReadIsLeftOut) {
  std::string text = kGrpoFile;
  text.insert(
      text.find("    pos_clip_ratio"),
      "    diff_clip_ratio: 2.5\n    final_clip_ratio: 4.5\n    optimizer_offload: true\n    cliprange_reward: 7\n");
  text.insert(text.find("    max_response"), "    eval_temperature: 0.5\n");
  const std::vector<std::string> sets = {"reward=[{rule: exact}]"};
  const std::filesystem::path path = write("grpo.yaml", text);
  const Config config = load(path, sets);
  EXPECT_EQ(*config.algorithm.log_ratio_max.get(), 2.5);
  EXPECT_EQ(*config.algorithm.token_loss_limit.get(), 4.5);
  EXPECT_EQ(*config.algorithm.reward_clip.get(), 7);
  EXPECT_EQ(config.train.offload.get(), "optimizer");
  const std::vector<std::string> lines = chatlearn_lines(path, sets);
  EXPECT_THAT(lines, Contains(HasSubstr("diff_clip_ratio: 2.5 -> algorithm.log_ratio_max: 2.5")));
  EXPECT_THAT(lines, Contains(HasSubstr("eval_temperature: 0.5 has no meaning here (recipe grpo does not read it)")));
}

// Where no colocation is given, each model has devices of its own; without KL there is no reference here.
TEST_F(ChatLearn, ModelsOutsideOfGroupsHaveDevicesOfTheirOwn) {
  const json placement = made(write("grpo.yaml", kGrpoFile)).at("placement");
  EXPECT_EQ(placement.at("devices").at("count"), 4);
  EXPECT_FALSE(placement.at("groups").contains("reference"));
  EXPECT_NE(placement.at("groups").at("policy").at("devices"),
            placement.at("groups").at("policy_trainer").at("devices"));
}

TEST_F(ChatLearn, ModelsThatAreAlikeAreFlattened) {
  std::string together = kGrpoFile;
  together.insert(together.find("  data_path"), "  colocation: [\"policy,policy_trainer,ref_policy\"]\n");
  const json config = made(write("grpo.yaml", together));
  EXPECT_EQ(config.at("devices"), 2);
  EXPECT_FALSE(config.contains("placement"));
}

TEST_F(ChatLearn, DpoCountsPairsAndUpdates) {
  const json config = made(write("dpo.yaml", R"(models:
  reference: {num_gpu: 1, load: m}
  policy_trainer: {num_gpu: 1, trainable: true, load: m, dpo_weight: 0.05, use_ipo: True, seq_length: 512}
runtime: {num_episode: 3, sample_per_episode: 40, train_global_batch_size: 16, colocation: ["reference,policy_trainer"]}
)"));
  EXPECT_EQ(config.at("recipe"), "dpo");
  EXPECT_EQ(config.at("run").at("iterations"), 9);  // 3 episodes of ceil(40 / 16) updates
  EXPECT_EQ(config.at("train").at("samples_per_update"), 32);
  EXPECT_EQ(config.at("algorithm").at("beta"), 0.05);
  EXPECT_EQ(config.at("algorithm").at("loss_type"), "ipo");
  EXPECT_EQ(config.at("data").at("max_tokens"), 512);
}

TEST_F(ChatLearn, ErrorsNameThePlace) {
  const auto error = [&](const std::string& text) { return base::message_of([&] { made(write("x.yaml", text)); }); };
  EXPECT_THAT(error("models: {tree: {num_gpu: 1}}\nruntime: {}\n"), HasSubstr("got tree; try trainer_engine: grpo"));
  EXPECT_THAT(error("models:\n  policy: {model_config_file: gone.yaml}\nruntime: {}\n"), HasSubstr("x.yaml:2"));
  EXPECT_THAT(error("models: {policy: {trainer_engine: magic}}\nruntime: {}\n"),
              HasSubstr("rlhf, dpo, online_dpo or grpo"));
  std::string colocated = kGrpoFile;
  colocated.insert(colocated.find("  data_path"), "  colocation: [\"policy,nobody\"]\n");
  EXPECT_THAT(error(colocated), HasSubstr("x.yaml:4"));
  EXPECT_THAT(error(colocated), HasSubstr("\"nobody\""));
  std::string odd = kGrpoFile;
  EXPECT_THAT(error(odd.replace(odd.find("tensor_model_parallel_size: 1"), 29, "tensor_model_parallel_size: 4")),
              HasSubstr("a multiple of the 4 devices of one copy of policy"));
}

// References within the file, variables that are not set, a key that is written twice, one group of single names: as
// the templates and examples of ChatLearn have them.
TEST_F(ChatLearn, FilesAreReadAsChatLearnDoes) {
  const json config = made(write("template.yaml", R"(runtime_args:
  train_backend: fsdp
  num_episode: 2
  num_episode: 3
  output_dir: out
  data_path: ${runtime_args.output_dir}/prompts.jsonl
  eval_data_path: ${COLLIMATE_NOT_SET}
  sample_per_episode: ${COLLIMATE_NOT_SET:64}
  colocation: [policy, policy_trainer]
models:
  policy_trainer: {num_gpu: 2, trainable: true, load: start, recompute_granularity: "${COLLIMATE_NOT_SET:None}"}
  policy: {num_gpu: "${models.policy_trainer.num_gpu}", load: "${models.policy_trainer.load}", new_token_limit: True}
)"));
  EXPECT_EQ(config.at("run").at("iterations"), 3);
  EXPECT_EQ(config.at("data").at("train"), "out/prompts.jsonl");
  EXPECT_FALSE(config.at("data").contains("eval"));
  EXPECT_EQ(config.at("rollout").at("samples_per_prompt"), 32);  // the main branch's default
  EXPECT_EQ(config.at("rollout").at("prompts_per_iteration"), 2);
  EXPECT_EQ(config.at("train").at("recompute"), "none");
  EXPECT_EQ(config.at("devices"), 2);
}

// A value counts wherever it stands, before or behind the key that switches adapters on.
TEST_F(ChatLearn, AdaptersHaveTheirScaling) {
  const auto lora = [&](const std::string& keys) {
    std::string text = kGrpoFile;
    text.insert(text.find("    pos_clip_ratio"), "    lora: {" + keys + "}\n");
    return made(write("lora.yaml", text)).at("models").at("policy").at("lora");
  };
  EXPECT_EQ(lora("enable_lora: true"), json({{"rank", 8}, {"alpha", 1.0}}));
  const json set = {{"rank", 4}, {"alpha", 32}};
  EXPECT_EQ(lora("enable_lora: true, lora_dim: 4, lora_scaling: 32"), set);
  EXPECT_EQ(lora("lora_scaling: 32, lora_dim: 4, enable_lora: true"), set);
}

TEST_F(ChatLearn, NumbersThatCountNothingAreNamed) {
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string text = kGrpoFile;
    return base::message_of([&] { made(write("x.yaml", text.replace(text.find(from), from.size(), to))); });
  };
  EXPECT_THAT(error("train_global_batch_size: 32", "train_global_batch_size: 0"), HasSubstr("x.yaml:9"));
  EXPECT_THAT(error("num_inference_per_prompt: 8", "num_inference_per_prompt: \"8\""), HasSubstr("a whole number"));
  EXPECT_THAT(error("num_episode: 7", "num_episode: [1]"), HasSubstr("num_episode to be a whole number of at least 1"));
  EXPECT_THAT(error("tensor_model_parallel_size: 1", "tensor_model_parallel_size: 0"),
              HasSubstr("tensor_model_parallel_size to be a whole number"));
  EXPECT_THAT(error("data_ratio: [3, 1]", "data_ratio: [a, b]"), HasSubstr("data_ratio to be a list of numbers"));
}

// A key that a row translates is one of the config's.
TEST_F(ChatLearn, RowsNameKeysOfTheConfig) {
  const Config config;
  std::vector<base::OptionInfo> options;
  config.describe_section("", options);
  for (const chatlearn::Row& row : chatlearn::rows()) {
    std::string key(row.key);
    if (key.empty()) continue;
    if (const size_t model = key.find("{}"); model != std::string::npos) key.replace(model, 2, "<name>");
    EXPECT_TRUE(std::ranges::any_of(options, [&](const base::OptionInfo& option) { return option.path == key; }))
        << key;
  }
}

}  // namespace
}  // namespace collimate::recipe
