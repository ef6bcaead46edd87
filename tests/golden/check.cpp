#include "tests/golden/check.h"

#include "tests/golden/place.h"

namespace collimate::golden {
namespace {

using Keys = std::initializer_list<const char*>;

// Numbers under the keys; where the object has them, or all of them.
void numbers_at(const Place& object, Keys required, Keys optional = {}) {
  for (const char* key : required) object.at(key).number();
  for (const char* key : optional)
    if (const auto found = object.find(key)) found->number();
}

void arrays_like(const Place& object, const Place& like, Keys required, Keys optional = {}) {
  for (const char* key : required) object.at(key).numbers_like(like);
  for (const char* key : optional)
    if (const auto found = object.find(key)) found->numbers_like(like);
}

// {name: {l2, sum, first}} at `key`, where it is there.
void check_parameters(const Place& object, const std::string& key) {
  const auto parameters = object.find(key);
  if (!parameters) return;
  for (const Place& one : parameters->entries()) {
    numbers_at(one, {"l2", "sum"});
    one.at("first").numbers();
  }
}

void check_final(const Place& object) {
  const auto last = object.find("final");
  if (!last) return;
  for (const char* key : {"params", "policy", "value"}) check_parameters(*last, key);
}

// Rows under one prefix; `trained`: with a mask or labels that say where.
void check_rows(const Place& batch, const std::string& prefix, bool trained, int64_t vocabulary) {
  const Place ids = batch.at(prefix + "input_ids");
  ids.ids(vocabulary);
  for (const char* key : {"attention_mask", "labels", "completion_mask", "position_ids"})
    if (const auto found = batch.find(prefix + key)) found->numbers_like(ids);
  if (trained && !batch.find(prefix + "labels")) batch.at(prefix + "completion_mask");
}

void check_pairs(const Place& batch, bool trained, int64_t vocabulary) {
  check_rows(batch, "", trained, vocabulary);
  const Place ids = batch.at("input_ids");
  if (ids.size() % 2 != 0) ids.fail("an even number of rows", std::to_string(ids.size()));
  if (const auto margin = batch.find("margin")) margin->numbers(ids.size() / 2);
}

void check_kto(const Place& batch, int64_t vocabulary) {
  check_rows(batch, "", true, vocabulary);
  batch.at("label").numbers(batch.at("input_ids").size());
  if (batch.find("KL_input_ids")) check_rows(batch, "KL_", true, vocabulary);
}

// Lists of as many tokens each; the rows' columns check how many lists they have.
void check_taught(const Place& batch, int64_t vocabulary) {
  check_rows(batch, "", true, vocabulary);
  const size_t rows = batch.at("input_ids").size();
  for (const Place& row : batch.at("teacher_rest").items(rows)) row.numbers();
  size_t listed = 0;
  for (const char* key : {"teacher_ids", "teacher_log_probs"})
    for (const Place& row : batch.at(key).items(rows))
      for (const Place& token : row.items()) {
        token.numbers(listed);
        listed = token.size();
      }
}

void check_offline_batch(const Place& batch, const std::string& kind, int64_t vocabulary) {
  if (kind == "kto") return check_kto(batch, vocabulary);
  if (kind == "distill") return check_taught(batch, vocabulary);
  if (kind == "dpo" || kind == "reward") return check_pairs(batch, kind == "dpo", vocabulary);
  if (kind == "sft" || kind == "process_reward") return check_rows(batch, "", true, vocabulary);
  for (const char* prefix : {"chosen_", "rejected_"}) check_rows(batch, prefix, true, vocabulary);
  batch.at("rejected_input_ids").items(batch.at("chosen_input_ids").size());
}

// Prompts, completions and what is known of them.
void check_policy_batch(const Place& batch, int64_t vocabulary) {
  const Place prompts = batch.at("prompt_ids"), completions = batch.at("completion_ids");
  prompts.ids(vocabulary);
  completions.ids(vocabulary);
  completions.items(prompts.size());
  arrays_like(batch, prompts, {"prompt_mask"});
  arrays_like(batch, completions, {"completion_mask"},
              {"tool_mask", "old_per_token_logps", "ref_per_token_logps", "sampling_per_token_logps"});
  const Place advantages = batch.at("advantages");
  const bool of_tokens = advantages.items(prompts.size())[0].value().is_array();
  of_tokens ? advantages.numbers_like(completions) : advantages.numbers(prompts.size());
  numbers_at(batch, {}, {"num_items_in_batch"});
}

// An update with its learning rate, or a part of one: without a gradient norm.
void check_update(const Place& step) {
  if (step.find("grad_norm")) numbers_at(step, {"grad_norm", "lr"});
}

void check_rollout_part(const Place& part, int64_t vocabulary) {
  numbers_at(part, {"loss"});
  check_policy_batch(part.at("batch"), vocabulary);
}

void check_ppo_update(const Place& update, int64_t vocabulary) {
  const Place ids = update.at("query_responses"), mask = update.at("padding_mask");
  ids.ids(vocabulary);
  const std::vector<Place> marked = mask.items(ids.size());
  for (size_t r = 0; r < ids.size(); ++r) {
    const size_t tokens = ids.value()[r].size();
    update.at("context_length").index(static_cast<int64_t>(tokens));
    marked[r].items(tokens - update.at("context_length").value().get<size_t>());
  }
  arrays_like(
      update, mask,
      {"padding_mask", "padding_mask_p1", "logprobs", "ref_logprobs", "values", "rewards", "advantages", "returns"});
  update.at("scores").numbers(ids.size());
  for (const Place& micro : update.at("micro").items()) {
    numbers_at(micro, {"pg_loss", "vf_loss", "loss", "lr"}, {"grad_norm"});
    for (const Place& row : micro.at("inds").items()) row.index(static_cast<int64_t>(ids.size()));
  }
}

}  // namespace

void check_steps(const json& golden, const std::string& kind, int64_t vocabulary) {
  const Place file(golden);
  check_parameters(file, "params_before");
  if (const auto head = file.find("head_weight")) head->numbers();
  for (const Place& step : file.at("steps").items()) {
    numbers_at(step, {"lr", "grad_norm"});
    for (const Place& micro : step.at("micro").items()) {
      numbers_at(micro, {"loss"}, {"num_items_in_batch"});
      check_offline_batch(micro.at("batch"), kind, vocabulary);
    }
  }
  check_final(file);
}

void check_dpo_variants(const json& golden, const std::string& kind, int64_t vocabulary) {
  const Place file(golden);
  for (const Place& batch : file.at("batches").items()) check_offline_batch(batch, kind, vocabulary);
  const std::vector<Place> variants = file.at("variants").entries();
  if (variants.empty()) file.at("variants").fail("one variant or more", "none");
  for (const Place& variant : variants) {
    for (const Place& step : variant.at("steps").items()) {
      numbers_at(step, {}, {"loss"});
      check_update(step);
      if (const auto micros = step.find("micro"))
        for (const Place& micro : micros->items()) numbers_at(micro, {"loss"});
    }
    check_final(variant);
  }
}

void check_rollouts(const json& golden, const std::string&, int64_t vocabulary) {
  const Place file(golden);
  for (const Place& step : file.at("steps").items()) {
    check_update(step);
    if (const auto micros = step.find("micro"))
      for (const Place& micro : micros->items()) check_rollout_part(micro, vocabulary);
    else
      check_rollout_part(step, vocabulary);
  }
  check_final(file);
}

void check_policy_variants(const json& golden, const std::string&, int64_t vocabulary) {
  const Place file(golden), inputs = file.at("inputs");
  check_policy_batch(inputs, vocabulary);
  arrays_like(file, inputs.at("completion_ids"), {}, {"model_logprobs_temperature1"});
  const std::vector<Place> variants = file.at("variants").entries();
  if (variants.empty()) file.at("variants").fail("one variant or more", "none");
  for (const Place& variant : variants) {
    numbers_at(variant, {"loss", "grad_norm"});
    if (const auto norms = variant.find("grad_l2"))
      for (const Place& norm : norms->entries()) norm.number();
  }
}

void check_ppo(const json& golden, const std::string&, int64_t vocabulary) {
  const Place file(golden);
  for (const char* head : {"reward", "value"}) file.at("heads").at(head).numbers();
  for (const Place& update : file.at("updates").items()) check_ppo_update(update, vocabulary);
  check_final(file);
}

void check_ppo_arrays(const json& golden, const std::string&, int64_t) {
  const Place file(golden), inputs = file.at("inputs"), mask = inputs.at("mask");
  for (const Place& row : mask.items()) row.numbers();
  inputs.at("score").numbers(mask.size());
  arrays_like(inputs, mask, {"old_logprobs", "new_logprobs", "ref_logprobs", "values", "new_values"});
  for (const Place& one : file.at("cases").items()) {
    numbers_at(one, {"gamma", "lam", "kl_coef", "pg_loss", "vf_loss"}, {"pg_clipfrac", "vf_clipfrac"});
    arrays_like(one, mask, {"advantages_raw", "returns", "advantages_whitened"}, {"rewards"});
  }
}

}  // namespace collimate::golden
