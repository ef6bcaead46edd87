#include "collimate/recipe/other_names.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/recipe/config.h"

namespace collimate::recipe {
namespace {

std::string error_of(const std::string& yaml) {
  Config config;
  try {
    base::apply(base::parse_config("recipe: grpo\n" + yaml, "a.yaml"), config);
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(OtherNames, AreNamedByOurs) {
  EXPECT_EQ(error_of("train: {per_device_train_batch_size: 4}\n"),
            "[a.yaml:2] expected a key of section train, got \"per_device_train_batch_size\"; try "
            "\"train.samples_per_update\": rows of an optimizer step on all devices together");
  EXPECT_EQ(
      error_of("train: {per_device_train_batch_size: 4, samples_per_update: 8}\n"),
      "[a.yaml:2] expected a key of section train, got \"per_device_train_batch_size\"; try leaving it out, as the "
      "config has \"train.samples_per_update\": rows of an optimizer step on all devices together");
  EXPECT_EQ(error_of("num_train_epochs: 3\n"),
            "[a.yaml:2] expected a key of the configuration, got \"num_train_epochs\"; try \"run.epochs\"");
  EXPECT_THAT(error_of("train: {epochs: 3}\n"),
              testing::HasSubstr("try \"run.epochs\": passes over the data; train.ppo_epochs are passes over an "));
  EXPECT_THAT(error_of("train: {num_epochs: 3}\n"), testing::EndsWith("try \"run.epochs\""));
  EXPECT_THAT(error_of("n_gpus: 8\n"), testing::EndsWith("try \"devices\": recipes compute on CPUs alone"));
}

std::string loaded(const nlohmann::json& values, const std::vector<std::string>& sets = {}) {
  try {
    load_values(values, sets);
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(OtherNames, AreFoundAtAnyDepth) {
  const auto expected = [](const std::string& path, const std::string& remedy) {
    return testing::HasSubstr(fmt::format("got \"{}\"; try {}", path, remedy));
  };
  const std::string verl =
      loaded({{"actor_rollout_ref", {{"rollout", {{"n", 8}}}, {"actor", {{"optim", {{"lr", 1e-6}}}}}}},
              {"critic", {{"optim", {{"lr", 1e-5}}}}},
              {"algorithm", {{"kl_ctrl", {{"kl_coef", 0.1}}}}},
              {"trainer", {{"total_epochs", 1}, {"nowhere", 1}}}});
  EXPECT_THAT(verl, expected("actor_rollout_ref.rollout.n", "\"rollout.samples_per_prompt\""));
  EXPECT_THAT(verl, expected("actor_rollout_ref.actor.optim.lr", "\"train.learning_rate\""));
  EXPECT_THAT(verl, expected("critic.optim.lr", "\"train.value_learning_rate\""));
  EXPECT_THAT(verl, expected("trainer.total_epochs", "\"run.epochs\""));
  EXPECT_THAT(verl, expected("kl_ctrl.kl_coef", "\"algorithm.kl_coefficient\""));
  EXPECT_THAT(verl, testing::HasSubstr("a key of section algorithm"));
  EXPECT_THAT(verl, expected("trainer.nowhere", "\"run\": other keys stand elsewhere"));
  EXPECT_EQ(std::ranges::count(verl, '\n'), 5);
}

TEST(OtherNames, AreNamedTogetherWithMisspeltKeys) {
  EXPECT_EQ(loaded({{"recipe", "grpo"}, {"rollot", {{"samples_per_promt", 4}}}, {"cutoff_len", 8}}, {"beta=1"}),
            "[config] expected a key of the configuration, got \"cutoff_len\"; try \"data.max_tokens\"\n"
            "[config] expected a key of the configuration, got \"rollot\"; try \"rollout\"\n"
            "[config] expected a key of section rollout, got \"samples_per_promt\"; try \"samples_per_prompt\"\n"
            "[--set beta] expected a key of the configuration, got \"beta\"; try \"algorithm.beta\"");
  EXPECT_THAT(loaded({{"temperature", 1}, {"recipe", "grpo"}}),
              testing::HasSubstr("try \"rollout.temperature\" or \"evaluation.temperature\""));
}

TEST(OtherNames, OfSeveralRowsTheLongestNameIsMeant) {
  EXPECT_EQ(remedy_for_name("actor_rollout_ref.rollout.val_kwargs.n").text, "\"evaluation.samples_per_prompt\"");
  EXPECT_THAT(remedy_for_name("vllm_mode").text, testing::StartsWith("leaving it out: "));
  EXPECT_THAT(remedy_for_name("vllm_gpu_memory_utilization").text, testing::StartsWith("\"run.memory_budget\""));
  EXPECT_EQ(remedy_for_name("not_vllm_mode").text, "");
}

std::set<std::string> our_keys() {
  std::vector<base::OptionInfo> options;
  Config().describe_section("", options);
  std::set<std::string> keys;
  for (const base::OptionInfo& option : options) keys.insert(option.path);
  return keys;
}

// The fields of TRL 1.16's GRPOConfig, DPOConfig, SFTConfig and RewardConfig that are not TrainingArguments', and keys
// of the scripts of verl and LLaMA-Factory: each has a row, or the same name here.
TEST(OtherNames, HaveTheFieldsOfTrlAndTheKeysOfScripts) {
  std::set<std::string> ours;
  for (const std::string& key : our_keys()) ours.insert(key.substr(key.rfind('.') + 1));
  std::istringstream keys(R"(
    model_init_kwargs trust_remote_code router_aux_loss_coef disable_dropout num_generations num_generations_eval
    max_completion_length ds3_gather_for_generation shuffle_dataset pad_to_multiple_of generation_batch_size
    steps_per_generation temperature top_p top_k min_p generation_kwargs chat_template_kwargs repetition_penalty
    cache_implementation use_vllm vllm_mode vllm_server_base_url vllm_structured_outputs_regex
    vllm_gpu_memory_utilization vllm_max_model_length vllm_tensor_parallel_size beta num_iterations epsilon delta
    epsilon_high sapo_temperature_neg vespo_k_pos importance_sampling_level reward_weights
    multi_objective_aggregation scale_rewards loss_type mask_truncated_completions sync_ref_model
    ref_model_mixup_alpha ref_model_sync_steps top_entropy_quantile entropy_coef use_adaptive_entropy entropy_target
    max_tool_calling_iterations vllm_importance_sampling_correction off_policy_mask_threshold use_bias_correction_kl
    log_completions num_completions_to_print use_transformers_continuous_batching dataset_num_proc max_length
    truncation_mode padding_free precompute_ref_log_probs loss_weights ld_alpha f_divergence_type
    f_alpha_divergence_coef label_smoothing use_weighting discopop_tau activation_offloading pad_token
    chat_template_path dataset_text_field dataset_kwargs eos_token packing packing_strategy eval_packing
    completion_only_loss assistant_only_loss center_rewards_coefficient kl_coef do_train loss_agg_mode cutoff_len
    actor_rollout_ref trainer pref_ftx neat_packing preprocessing_num_workers)");
  for (std::string key; keys >> key;) EXPECT_TRUE(ours.contains(key) || !remedy_for_name(key).text.empty()) << key;
}

TEST(OtherNames, OfRecipesAreNamedByOurs) {
  const auto remedy = [](const std::string& name) { return remedy_for_recipe(name); };
  EXPECT_EQ(remedy("PPO"), "recipe: ppo");
  EXPECT_EQ(remedy("orpo"), "recipe: dpo with algorithm: {loss_type: orpo}");
  EXPECT_EQ(remedy("SimPO"), "recipe: dpo with algorithm: {loss_type: simpo}");
  EXPECT_EQ(remedy("dapo"), "recipe: grpo with algorithm: {loss_type: dapo}");
  EXPECT_EQ(remedy("online-dpo"), "recipe: grpo with algorithm: {loss_type: online_dpo}");
  EXPECT_EQ(remedy("rloo"), "recipe: grpo with algorithm: {advantage: rloo}");
  EXPECT_EQ(remedy("reinforce++"), "recipe: grpo with algorithm: {advantage: reinforce_plus_plus}");
  EXPECT_EQ(remedy("gspo"), "recipe: grpo with algorithm: {importance_sampling_level: sequence}");
  EXPECT_EQ(remedy("rm"), "recipe: reward");
  EXPECT_EQ(remedy("pt"), "recipe: sft with rows of {\"text\": …}");
  EXPECT_EQ(remedy("sort"), "");
  EXPECT_EQ(loaded({{"recipe", "orpo"}}).substr(0, 47), "[config] expected recipe to be one of \"sft\", \"d");
  EXPECT_THAT(loaded({{"recipe", "orpo"}}),
              testing::EndsWith("got the text \"orpo\"; try recipe: dpo with algorithm: {loss_type: orpo}"));
}

TEST(OtherNames, LeadToKeysThatExist) {
  const std::set<std::string> keys = our_keys();
  std::set<std::string_view> names;
  std::vector<OtherName> all(other_names().begin(), other_names().end());
  all.insert(all.end(), common_words().begin(), common_words().end());
  for (const OtherName& other : all) {
    EXPECT_TRUE(names.insert(other.name).second) << other.name << " stands twice";
    std::string key(other.key);
    if (key.starts_with("--") || key.empty()) continue;
    for (const std::string role : {"policy", "reward", "reference", "value", "teacher"})
      if (key.starts_with("models." + role + ".")) key.replace(7, role.size(), "<name>");
    EXPECT_TRUE(keys.contains(key)) << other.key;
  }
}

}  // namespace
}  // namespace collimate::recipe
