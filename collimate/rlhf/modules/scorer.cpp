#include "collimate/rlhf/modules/scorer.h"

#include <ATen/TensorOperators.h>

#include <numeric>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/teacher_keys.h"
#include "collimate/batch/trainable.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/modules/answers.h"
#include "collimate/rlhf/modules/memory.h"
#include "collimate/rlhf/modules/step_reward.h"
#include "collimate/rlhf/types/divergence.h"
#include "collimate/rlhf/types/loss.h"
#include "collimate/tensor/results.h"
#include "collimate/text/tokenizer.h"
#include "collimate/train/scoring.h"

namespace collimate::rlhf {
namespace {

using graph::FunctionSpec;
using graph::Kind;

FunctionSpec score_spec(const std::string& name, const std::string& makes) {
  return {.name = name,
          .kind = Kind::kScore,
          .needs = {"uid", "ids", "trainable"},
          .makes = {makes},
          .cost = {.forward_passes = 1, .columns = {"ids"}}};
}

// Returns the spec of a function that makes the log-probs of answers to other prompts, from which KTO estimates its KL.
FunctionSpec mismatched_spec(const std::string& name, const std::string& makes) {
  return {.name = name,
          .kind = Kind::kScore,
          .needs = {"uid", kMismatchedIds.name, kMismatchedTrainable.name},
          .makes = {makes},
          .cost = {.forward_passes = 1, .columns = {kMismatchedIds.name}}};
}

// Return the specs of the functions that make a teacher's distributions and a student's divergence from them.
FunctionSpec teacher_spec() {
  return {.name = "teacher_lists",
          .kind = Kind::kScore,
          .needs = {"uid", "ids", "trainable"},
          .makes = {batch::kTeacherIds.name, batch::kTeacherLogProbs.name, batch::kTeacherRest.name},
          .cost = {.forward_passes = 1, .columns = {"ids"}}};
}
FunctionSpec divergence_spec() {
  FunctionSpec spec = teacher_spec();
  spec.name = "divergence";
  spec.needs.insert(spec.needs.end(), spec.makes.begin(), spec.makes.end());
  spec.makes = {kDivergence.name};
  return spec;
}

// Returns the rows, in their order, with the divergence of the model's distributions from the teacher's.
Batch with_divergence(model::Model& model, const Batch& input, const Divergence& divergence,
                      const train::ScoringOptions& scoring) {
  const train::ListedKeys keys{{.name = "own_log_probs", .ragged = true}, {.name = "own_rest", .ragged = true}};
  const Batch rows = train::with_listed(model, input, keys, scoring);
  const int64_t count = rows.column(keys.log_probs.name).schema.inner.at(0);
  const auto outcomes_of = [&](const Key<float>& listed, const Key<float>& rest, int64_t r) {
    const auto own = rows.row(listed, r), others = rows.row(rest, r);
    return outcomes(tensor::tensor_beside({}, own).view({-1, count}), tensor::tensor_beside({}, others));
  };
  std::vector<std::vector<float>> column;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const at::Tensor value =
        divergence.value(outcomes_of(keys.log_probs, keys.rest, r).to(at::kDouble),
                         outcomes_of(batch::kTeacherLogProbs, batch::kTeacherRest, r).to(at::kDouble));
    const at::Tensor floats = value.to(at::kFloat).contiguous();
    column.emplace_back(floats.const_data_ptr<float>(), floats.const_data_ptr<float>() + floats.numel());
  }
  Batch out = input;
  out.set_ragged(kDivergence, column);
  return out;
}

// Returns the rows with a column `makes`, the sum of the log-probs of each row's mismatched answer.
Batch with_mismatched(model::Model& model, const Batch& input, const Key<float>& makes,
                      const train::ScoringOptions& scoring) {
  Batch rows;
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<uint8_t>> trainable;
  for (int64_t r = 0; r < input.rows(); ++r) {
    const auto tokens = input.row(kMismatchedIds, r);
    const auto marked = input.row(kMismatchedTrainable, r);
    ids.emplace_back(tokens.begin(), tokens.end());
    trainable.emplace_back(marked.begin(), marked.end());
  }
  rows.set(batch::kUid, input.all(batch::kUid));
  rows.set_ragged(batch::kIds, ids);
  rows.set_ragged(batch::kTrainable, trainable);
  rows = train::with_log_probs(model, rows, batch::kLogProbs, scoring);
  std::vector<float> sums;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const std::vector<float> of_tokens = batch::at_trainable(rows, batch::kLogProbs, r);
    sums.push_back(static_cast<float>(std::accumulate(of_tokens.begin(), of_tokens.end(), 0.0)));
  }
  Batch out = input;
  out.set(makes, sums);
  return out;
}

FunctionSpec answers_spec() {
  return {.name = "answers",
          .kind = Kind::kScore,
          .needs = {"uid", "ids", "prompt_tokens", kAsked.name},
          .makes = {kModelAnswer.name},
          .cost = {.forward_passes = 1, .columns = {"ids"}}};
}

}  // namespace

ScorerModule::ScorerModule(const nlohmann::json& parameters) { base::apply(parameters, "models", options_); }

std::vector<FunctionSpec> ScorerModule::functions() const {
  if (options_.head == std::string("lm"))
    return {score_spec("log_probs", batch::kReferenceLogProbs.name),
            score_spec("old_log_probs", batch::kOldLogProbs.name),
            answers_spec(),
            teacher_spec(),
            divergence_spec(),
            mismatched_spec("mismatched_log_probs", kMismatchedLogProb.name),
            mismatched_spec("mismatched_reference_log_probs", kMismatchedReferenceLogProb.name)};
  if (options_.head == std::string("value")) return {score_spec("values", batch::kValues.name)};
  FunctionSpec score = score_spec("score", batch::kReward.name);
  if (scores_steps()) score.needs.push_back(batch::kPromptTokens.name);
  return {std::move(score), score_spec("step_scores", kStepScores.name)};
}

std::vector<tensor::MemoryItem> ScorerModule::memory(const flow::Context& context) const {
  return decoder_memory(context, options_);
}

void ScorerModule::setup(flow::Context& context) {
  const auto rollout = read_section<RolloutOptions>(context, "rollout");
  const auto train = read_section<TrainOptions>(context, "train");
  temperature_ = options_.sampled ? static_cast<float>(rollout.values().temperature) : 1.0F;
  micro_batch_tokens_ = micro_batch_tokens(train);
  for (const FunctionSpec& spec : functions())
    layouts_[spec.name] = {context.layout(spec.name).micro_batch, context_ranks(context, spec.name)};
  progress_ = context.progress;
  decoder_ = open_decoder(context, options_, model_ranks(context));
  if (context.placement.swaps(context.model)) decoder_->away = away_file(context);
  decoder_->come();
  router_replay_ = train.router_replay;
  port_ = std::make_unique<DecoderPort>(decoder_);
}

void ScorerModule::reside(bool on_device) { on_device ? decoder_->come() : decoder_->leave(); }

train::RecordedRoutes ScorerModule::routes() const {
  using train::RecordedRoutes;
  const bool mixture = model::routed_width(decoder_->model->shape()) > 0;
  if (!options_.sampled || router_replay_ == "none") return RecordedRoutes::kIgnored;
  if (router_replay_ == "compare") return mixture ? RecordedRoutes::kCompared : RecordedRoutes::kIgnored;
  if (mixture) return RecordedRoutes::kReplayed;
  throw base::InputError(base::expectation("train.router_replay", "compare or none with a model without experts",
                                           router_replay_, "leaving it out"));
}

Batch ScorerModule::call(const std::string& function, const Batch& input, const flow::CallInfo&) {
  train::ScoringOptions scoring{.temperature = temperature_,
                                .micro_batch_tokens = micro_batch_tokens_,
                                .micro_batch_rows = layouts_.at(function).micro_batch_rows,
                                .progress = progress_,
                                .context = layouts_.at(function).context};
  model::Model& model = *decoder_->model;
  if (function == "log_probs") return train::with_log_probs(model, input, batch::kReferenceLogProbs, scoring);
  if (function == "old_log_probs" && input.has(batch::kRoutedExperts.name)) scoring.routes = routes();
  if (function == "old_log_probs") return train::with_log_probs(model, input, batch::kOldLogProbs, scoring);
  if (function == "answers") {
    if (!stop_ids_) stop_ids_ = text::load_tokenizer(options_.path)->info().stop_ids;
    const auto held = decoder_->weights->hold_for_inference();
    return with_answers(*decoder_, options_, *stop_ids_, input, progress_);
  }
  if (function == "teacher_lists" || function == "divergence")
    scoring.temperature = static_cast<float>(options_.algorithm.distillation_temperature);
  if (function == "teacher_lists")
    return train::with_teacher_lists(model, input, options_.algorithm.teacher_tokens, scoring);
  if (function == "divergence") {
    const std::string type = chosen_types(options_.algorithm, options_.default_loss).front();
    return with_divergence(model, input, divergence_of(type, options_.algorithm.jsd_beta), scoring);
  }
  if (function == "mismatched_log_probs") return with_mismatched(model, input, kMismatchedLogProb, scoring);
  if (function == "mismatched_reference_log_probs")
    return with_mismatched(model, input, kMismatchedReferenceLogProb, scoring);
  if (function == "values") return train::with_values(model, input, scoring);
  if (function == "step_scores") return train::with_token_scores(model, input, kStepScores, scoring);
  COLLIMATE_CHECK(function == "score", "scorer has no function {}", function);
  if (scores_steps()) {
    if (!tokenizer_) tokenizer_ = text::load_tokenizer(options_.path);
    const StepJudgement reward{options_.step_reward.get(), options_.step_separator.get(), options_.row_tokens.get()};
    return with_step_rewards(model, *tokenizer_, reward, input, scoring);
  }
  Batch scored = train::with_scores(model, input, scoring);
  scored.set(batch::kReward, scored.all(batch::kScore));
  return scored;
}

}  // namespace collimate::rlhf
