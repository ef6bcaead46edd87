#include "tests/golden/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/rlhf/loss/list.h"

namespace collimate::golden {
namespace {

const json kNull;

// Options that change the numbers and that a replay does not have: they must be at their default.
const std::map<std::string, json>& options_we_lack() {
  static const std::map<std::string, json> defaults = {{"rpo_alpha", nullptr},
                                                       {"reference_free", false},
                                                       {"alpha", 0.0},
                                                       {"use_adaptive_entropy", false},
                                                       {"use_vllm", false},
                                                       {"label_smoothing_factor", 0.0},
                                                       {"neftune_noise_alpha", nullptr},
                                                       {"is_encoder_decoder", false},
                                                       {"bf16", false},
                                                       {"fp16", false},
                                                       {"use_peft", false},
                                                       {"peft_config", nullptr},
                                                       {"optim_args", nullptr}};
  return defaults;
}

// Options that a replay reads elsewhere, or that the recorded batches, masks and rates have already in them.
constexpr std::string_view kReadElsewhere =
    " "
    "model ref pad note pooling optimizer temperature_used loss_type loss_weights optim adam_beta1 adam_beta2 "
    "adam_epsilon weight_decay max_grad_norm learning_rate lr_scheduler_type lr_scheduler_kwargs warmup_steps "
    "warmup_ratio max_steps num_train_epochs seed data_seed per_device_train_batch_size "
    "gradient_accumulation_steps gradient_checkpointing max_length max_prompt_length max_completion_length "
    "truncation_mode padding_free packing packing_strategy completion_only_loss assistant_only_loss "
    "disable_dropout precompute_ref_log_probs sync_ref_model ref_model_mixup_alpha ref_model_sync_steps "
    "num_iterations num_generations steps_per_generation generation_batch_size temperature top_p top_k min_p "
    "repetition_penalty scale_rewards reward_weights multi_objective_aggregation mask_truncated_completions "
    "shuffle_dataset num_ppo_epochs num_mini_batches vf_coef missing_eos_penalty response_length "
    "stop_token stop_token_id entropy_coef_min entropy_coef_max entropy_coef_delta entropy_target "
    "router_aux_loss_coef use_liger_kernel pad_to_multiple_of train_sampling_strategy "
    "per_device_eval_batch_size num_generations_eval precompute_ref_batch_size activation_offloading pad_token "
    "eos_token padding_value dataset_num_proc dataset_text_field remove_unused_columns logging_steps report_to "
    "output_dir save_strategy save_steps total_episodes local_rollout_forward_batch_size generation_kwargs "
    "max_tool_calling_iterations average_tokens_across_devices tf32 ";

bool is_read_elsewhere(const std::string& name) { return kReadElsewhere.find(" " + name + " ") != std::string::npos; }

// Our name of each of TRL's constants that our losses read: the same, but for a few.
const std::map<std::string, std::string>& our_names() {
  static const auto names = [] {
    std::map<std::string, std::string> all = {{"entropy_coef", "entropy_coefficient"},
                                              {"cliprange", "epsilon"},
                                              {"cliprange_value", "value_clip"},
                                              {"lam", "lambda"},
                                              {"kl_coef", "kl_coefficient"}};
    const json section = base::to_json(rlhf::AlgorithmOptions().section_value());
    for (const auto& [name, value] : section.items())
      if (!is_read_elsewhere(name)) all.emplace(name, name);
    return all;
  }();
  return names;
}

void refuse_what_we_lack(const Options& options, bool required) {
  for (const auto& [name, fallback] : options_we_lack()) {
    const json& value = options.find(name);
    if (!value.is_null() && value != fallback)
      throw UnknownKind(fmt::format("option {} = {}", name, value.dump()), required);
  }
}

// Makes a loss: our InputError for a name or value that we do not have is an unknown kind here.
template <class Make>
auto known(bool required, Make make) {
  try {
    return make();
  } catch (const base::InputError& error) {
    throw UnknownKind(error.what(), required);
  }
}

rlhf::LossSetting setting_of(const Options& options) {
  json ours = json::object();
  for (const auto& [theirs, name] : our_names())
    if (const json& value = options.find(theirs); !value.is_null()) ours[name] = value;
  rlhf::LossSetting setting;
  base::apply(ours, "golden", setting.options);
  return setting;
}

std::vector<std::string> names_of(const json& loss_types, const std::string& fallback) {
  if (loss_types.is_null()) return {fallback};
  if (loss_types.is_string()) return {loss_types.get<std::string>()};
  return loss_types.get<std::vector<std::string>>();
}

// Our name of a trainer's loss.
std::string our_loss(const std::string& trainer, const std::string& type) {
  static const std::map<std::string, std::string> kNames = {
      {"sft.chunked_nll", "nll"}, {"cpo.sigmoid", "cpo"}, {"cpo.hinge", "cpo_hinge"}, {"cpo.ipo", "cpo_ipo"}};
  const auto found = kNames.find(trainer + "." + type);
  return found == kNames.end() ? type : found->second;
}

// num_items_in_batch counts the tokens of a generation batch; one window of accumulation is a part of it.
void add_rollout_limits(const Options& o, double items, double window, rlhf::LossSetting& setting) {
  double generation = o.number("steps_per_generation", o.number("gradient_accumulation_steps", 1));
  if (o.find("steps_per_generation").is_null() && o.find("generation_batch_size").is_number())
    generation = o.number("generation_batch_size", 0) / o.number("per_device_train_batch_size", 8);
  setting.updates = generation / window;
  setting.options.token_normalizer = items == 0 ? "update" : "iteration";
  setting.completion_tokens = static_cast<int64_t>(o.number("max_completion_length", 512));
  if (o.find("use_bias_correction_kl").is_null()) setting.options.use_bias_correction_kl = true;
}

rlhf::Loss sum_of(const std::vector<rlhf::Loss>& parts) {
  return rlhf::weighted_sum(parts, std::vector<double>(parts.size(), 1.0));
}

// This stands before the rows of a file that no trainer of TRL made: "own rollouts".
constexpr std::string_view kOwn = "own ";

struct Trainer {
  std::string name, rows, fallback;
  std::set<std::string> required;  // losses that must be there
  std::string in_trl;              // the class; empty: a part of another one
};

const std::vector<Trainer>& trainers() {
  static const std::vector<Trainer> list = {
      {"sft", "completions", "nll", {"nll"}, "SFTTrainer"},
      {"dpo", "pairs", "sigmoid", {"sigmoid", "ipo", "hinge"}, "DPOTrainer"},
      {"reward", "scored pairs", "bradley_terry", {"bradley_terry"}, "RewardTrainer"},
      {"process_reward", "labelled steps", "step_logistic", {}, ""},
      {"kto", "marked", "kto", {}, "KTOTrainer"},
      {"orpo", "pairs", "orpo", {}, "ORPOTrainer"},
      {"cpo", "pairs", "sigmoid", {}, "CPOTrainer"},
      {"distill", "taught completions", "forward_kl", {}, ""},
      {"grpo", "rollouts", "dapo", {"grpo", "dapo", "dr_grpo", "bnpo", "cispo"}, "GRPOTrainer"},
      {"ppo", "rollouts", "ppo", {"ppo"}, "PPOTrainer"},
      {"value", "values", "value", {"value"}, ""}};
  return list;
}

const Trainer& find_trainer(const std::string& name) {
  for (const Trainer& trainer : trainers())
    if (trainer.name == name) return trainer;
  throw UnknownKind("trainer " + name, false);
}

// TRL's names of the losses that the options ask for. A trainer that has but one in TRL has ours of its rows too.
std::vector<std::string> types_of(const Trainer& trainer, const Options& o) {
  const bool has_types = trainer.name != "reward" && trainer.name != "orpo" && trainer.name != "value";
  const auto names = names_of(o.find("loss_type"), trainer.fallback), ours = rlhf::loss_types(trainer.rows);
  const auto is_ours = [&](const std::string& name) { return std::ranges::find(ours, name) != ours.end(); };
  return has_types || std::ranges::all_of(names, is_ours) ? names : std::vector{trainer.fallback};
}

}  // namespace

const json& Options::find(const std::string& name) const {
  if (over_.contains(name)) return over_[name];
  if (hyper_->contains(name)) return (*hyper_)[name];
  return kNull;
}

bool Options::has(const std::string& name) const { return over_.contains(name) || hyper_->contains(name); }

double Options::number(const std::string& name, double fallback) const {
  const json& value = find(name);
  return value.is_number() ? value.get<double>() : fallback;
}

std::string Options::text(const std::string& name, const std::string& fallback) const {
  const json& value = find(name);
  return value.is_string() ? value.get<std::string>() : fallback;
}

bool Options::flag(const std::string& name, bool fallback) const {
  const json& value = find(name);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

std::string trainer_class(const json& golden) {
  const std::string text = Options(golden).text("trainer", "") + " ";
  std::string word;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
    } else {
      if (word.ends_with("Trainer")) return word;
      word.clear();
    }
  }
  return "";
}

std::string trainer_kind(const json& golden) {
  if (const std::string text = Options(golden).text("trainer", ""); text.starts_with(kOwn))
    for (const Trainer& trainer : trainers())
      if (trainer.rows == text.substr(kOwn.size())) return trainer.name;
  const std::string name = trainer_class(golden);
  for (const Trainer& trainer : trainers())
    if (!name.empty() && trainer.in_trl == name) return trainer.name;
  return "";
}

bool has_loss_type(const json& hyper) {
  const json& type = Options(hyper).find("loss_type");
  return !type.is_null() && type != "per variant";
}

bool is_required(const std::string& trainer, const Options& options) {
  const Trainer& found = find_trainer(trainer);
  for (const std::string& type : names_of(options.find("loss_type"), found.fallback))
    if (!found.required.contains(type)) return false;
  return true;
}

train::LearnerOptions learner_options(const Options& o) {
  const std::string optimizer = o.text("optim", "adamw_torch");
  if (optimizer != "adamw_torch" && optimizer != "adamw_torch_fused") throw UnknownKind("optimizer " + optimizer, true);
  const train::AdamOptions adam;
  return {.adam = {.beta1 = o.number("adam_beta1", adam.beta1),
                   .beta2 = o.number("adam_beta2", adam.beta2),
                   .epsilon = o.number("adam_epsilon", adam.epsilon),
                   .weight_decay = o.number("weight_decay", adam.weight_decay)},
          .max_grad_norm = o.has("max_grad_norm") ? o.number("max_grad_norm", 0.0) : 1.0,  // null: no clipping
          .micro_batch_tokens = int64_t{1} << 40,
          .temperature = static_cast<float>(o.number("temperature", 1.0))};
}

rlhf::Loss loss_of(const std::string& trainer_name, const Options& o, double items, double window) {
  const Trainer& trainer = find_trainer(trainer_name);
  const bool required = is_required(trainer_name, o);
  refuse_what_we_lack(o, required);
  const auto types = types_of(trainer, o);
  std::vector<rlhf::Loss> parts;
  for (const std::string& type : types) {
    parts.push_back(known(required, [&] {
      rlhf::LossSetting setting = setting_of(o);
      if (trainer_name == "dpo" && type == "sigmoid") setting.options.label_smoothing = 0;  // TRL's has none
      if (trainer_name == "grpo") add_rollout_limits(o, items, window, setting);
      return rlhf::make_loss(trainer.rows, our_loss(trainer_name, type), setting);
    }));
  }
  if (!o.find("loss_weights").is_array()) return parts.size() == 1 ? parts[0] : sum_of(parts);
  return known(required, [&] { return rlhf::weighted_sum(parts, o.find("loss_weights").get<std::vector<double>>()); });
}

std::vector<std::string> loss_names(const std::string& trainer_name, const Options& o) {
  const Trainer& trainer = find_trainer(trainer_name);
  std::vector<std::string> names;
  for (const std::string& type : types_of(trainer, o))
    names.push_back(trainer.rows + " " + our_loss(trainer_name, type));
  return names;
}

rlhf::AlgorithmOptions algorithm_of(const Options& options) {
  return known(true, [&] { return setting_of(options).options; });
}

std::vector<std::string> unread_options(const json& hyper) {
  std::vector<std::string> names;
  for (const auto& [name, value] : hyper.items())
    if (!our_names().contains(name) && !options_we_lack().contains(name) && !is_read_elsewhere(name))
      names.push_back(name);
  return names;
}

}  // namespace collimate::golden
