#include "collimate/rlhf/modules/trainer.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/token_rows.h"
#include "collimate/batch/trainable.h"
#include "collimate/flow/line_groups.h"
#include "collimate/host/base_model.h"
#include "collimate/model/peft.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/modules/objective.h"
#include "collimate/rlhf/types/ptx.h"
#include "collimate/text/chat_template.h"
#include "collimate/text/tokenizer.h"

namespace collimate::rlhf {
namespace {

constexpr double kLearningRate = 1e-6;  // of a module that no recipe makes; each recipe has a default of its own

Loss loss_of(const DecoderOptions& options) {
  return make_loss(options.loss_rows, options.default_loss,
                   {.options = options.algorithm,
                    .completion_tokens = options.predicted_tokens,
                    .updates = static_cast<double>(options.updates_per_epoch)});
}

train::LearnerOptions learner_options(const DecoderOptions& model, const TrainOptions& t, float temperature) {
  const bool own_rate = model.head == std::string("value") && t.value_learning_rate > 0;
  return {.schedule = {t.lr_schedule, own_rate ? t.value_learning_rate.get() : t.learning_rate->value_or(kLearningRate),
                       t.warmup_updates, model.total_updates, t.lr_minimum_ratio},
          .adam = {.beta1 = t.adam_beta1,
                   .beta2 = t.adam_beta2,
                   .epsilon = t.adam_epsilon,
                   .b_rate_ratio = model.lora.b_rate_ratio,
                   .weight_decay = t.weight_decay},
          .max_grad_norm = t.max_grad_norm,
          .ema = model.head == std::string("value") ? 0.0 : t.ema.get(),
          .micro_batch_tokens = micro_batch_tokens(t, model.loss_rows),
          .temperature = temperature};
}

// Returns the form of the model that the run leaves, which has as many files as the model that the run began from.
model::FileForm exported_form(const std::string& asked, const DecoderOptions& options, const model::Weights& weights) {
  const std::string dtype = asked == "auto" ? "" : asked == "bfloat16" ? "BF16" : "F32";
  if (options.from_scratch) return {.dtype = dtype.empty() ? "F32" : dtype};
  return model::form_of_files(options.path, weights, dtype);
}

// Returns the loss of texts: `weight` times the mean negative log-prob of their tokens over all ranks' rows of the
// update.
Loss weighted_ptx(double weight) {
  return {.name = "ptx", .value = [weight](LossContext& c) {
            c.token_mean("actor/ptx_loss", -c.log_probs());
            return c.log_probs().sum() * (-weight / c.global_tokens());
          }};
}

// Returns the texts that samples bring, as rows with the samples' uids.
Batch ptx_rows(const Batch& samples) {
  batch::TokenRows rows;
  for (int64_t r = 0; r < samples.rows(); ++r) {
    const auto ids = samples.row(kPtxIds, r);
    const auto trainable = samples.row(kPtxTrainable, r);
    rows.add(samples.get(batch::kUid, r), {ids.begin(), ids.end()},
             std::vector<uint8_t>(trainable.begin(), trainable.end()));
  }
  return rows.batch();
}

}  // namespace

TrainerModule::TrainerModule(const nlohmann::json& parameters)
    : ScorerModule(parameters),
      prefix_(options().head == std::string("value") ? "critic" : "actor"),
      loss_(loss_of(options())) {}

std::vector<graph::FunctionSpec> TrainerModule::functions() const {
  std::vector<graph::FunctionSpec> specs = ScorerModule::functions();
  std::vector<graph::Column> needs = {"uid", "ids", "trainable"};
  if (loss_.needs.rows_per_unit == 2) needs.push_back(batch::kPairUid.name);
  needs.insert(needs.end(), loss_.columns.begin(), loss_.columns.end());
  if (drawn()) needs.push_back(batch::kLogProbs.name);  // as sampled
  if (mixes()) needs.insert(needs.end(), {kPtxIds.name, kPtxTrainable.name});
  specs.push_back({.name = "train",
                   .kind = graph::Kind::kTrain,
                   .needs = needs,
                   .granularity = graph::Granularity::kIteration,
                   .collect = graph::Collect::kNone,
                   .writes_weights = true,
                   .retry_safe = false,
                   .cost = {.forward_passes = 1, .backward_passes = 1, .columns = {"ids"}}});
  return specs;
}

void TrainerModule::setup(flow::Context& context) {
  ScorerModule::setup(context);
  const auto train = read_section<TrainOptions>(context, "train");
  if (mixes()) ptx_loss_ = weighted_ptx(train.ptx_weight);
  mismatch_limit_ = train.mismatch_limit;
  mismatch_check_ = train.mismatch_check;
  path_ = options().path;
  form_ = exported_form(train.export_dtype, options(), *decoder().weights);
  speaks_ = context.mesh("train").coordinate(context.device, "dp") == 0;
  train::LearnerOptions learner = learner_options(options(), train, temperature());
  learner.routers =
      train::router_losses(decoder().model->shape(), train.router_aux_loss_coef.get(), train.router_z_loss_coef);
  const graph::Layout layout = context.layout("train");
  learner.micro_batch_rows = layout.micro_batch;
  learner.zero = layout.zero;
  learner.recompute = recompute_of(train, layout.recompute);
  if (offloads_optimizer(train, layout.offload)) learner.away = away_file(context);
  if (drawn()) learner.routes = routes();
  learner.seed = base::mix(context.seed, base::stable_hash(options().weights.get() + " dropout"));
  learner.deadline_seconds = context.deadline_seconds;
  learner.progress = context.progress;
  const train::TrainingRanks ranks{context.line("train", "dp"), context_ranks(context, "train"),
                                   context.copies("train"), context.line("train", flow::kExpertCopies)};
  learner_ = std::make_unique<train::Learner>(*decoder().model, learner, decoder().exec, ranks);
}

void TrainerModule::reside(bool on_device) {
  if (!on_device) learner_->offload(away());
  ScorerModule::reside(on_device);
  if (on_device) learner_->restore(away());
}

void TrainerModule::train_step(const std::string&, std::span<const Batch> updates, const flow::CallInfo& info) {
  LossMetrics sums;
  const train::Objective objective = objective_of(loss_, &sums);
  for (const Batch& rows : updates) rows.require(loss_.columns, info.node);
  if (drawn()) report_versions(updates);
  if (drawn()) report_rounding(updates);
  if (drawn() && mismatch_check_) check_later(updates);
  train::Objective of_texts = objective_of(ptx_loss_, &sums);
  of_texts.temperature = 1.F;  // texts are not drawn
  for (const Batch& rows : updates) {
    std::vector<train::UpdatePart> parts = {{rows, &objective}};
    if (mixes()) parts.push_back({ptx_rows(rows), &of_texts});
    report(learner_->update(std::move(parts)));
  }
  for (const auto& [name, sum] : sums) {
    if (sum.second > 0)
      metrics_.push_back({name, sum.first / sum.second, flow::Reduce::kMean, sum.second});
    else  // each micro-batch adds its share of an update's number; this is the mean over updates
      metrics_.push_back({name, sum.first / static_cast<double>(updates.size()), flow::Reduce::kSum});
  }
}

void TrainerModule::check_later(std::span<const Batch> updates) {
  std::set<int64_t> seen;
  std::vector<Batch> later;
  for (size_t i = 0; i < updates.size(); ++i) {
    std::vector<int64_t> fresh;
    for (int64_t r = 0; r < updates[i].rows(); ++r)
      if (seen.insert(updates[i].get(batch::kUid, r)).second) fresh.push_back(r);
    if (i > 0 && !fresh.empty()) later.push_back(updates[i].gather(fresh));
  }
  // Ranks that share the weights or divide the experts check together, also those without such rows.
  const bool together = decoder().weights->shares().several() || decoder().weights->experts().several();
  if (later.empty() && (updates.size() < 2 || !together)) return;
  const train::Mismatch found =
      learner_->check(later.empty() ? updates.front().slice(0, 0) : Batch::concatenate(later));
  if (later.empty()) return;
  metrics_.push_back({"mismatch/tokens_checked", static_cast<double>(found.tokens_compared), flow::Reduce::kSum});
  metrics_.push_back({"mismatch/logprob_abs_max", found.log_prob_abs_max, flow::Reduce::kMax});
  report_agreement(found.routes);
  stop_above_limit(found);
}

void TrainerModule::report_versions(std::span<const Batch> updates) {
  const auto version = static_cast<int64_t>(decoder().weights->version());
  int64_t oldest = version;
  for (const Batch& rows : updates) {
    if (!rows.has(batch::kWeightsVersion.name)) continue;
    for (int64_t r = 0; r < rows.rows(); ++r) {
      const auto trainable = rows.row(batch::kTrainable, r);
      const auto drawn_by = rows.row(batch::kWeightsVersion, r);
      for (size_t t = 0; t < trainable.size(); ++t)
        if (trainable[t] != 0) oldest = std::min(oldest, drawn_by[t]);
    }
  }
  metrics_.push_back({"sync/version", static_cast<double>(version), flow::Reduce::kLast});
  metrics_.push_back({"staleness/max", static_cast<double>(version - oldest), flow::Reduce::kMax});
}

void TrainerModule::report_rounding(std::span<const Batch> updates) {
  double largest = 0, sum = 0;
  size_t tokens = 0;
  for (const Batch& rows : updates) {
    if (!rows.has(batch::kOldLogProbs.name)) continue;
    const auto drawn = batch::at_trainable(rows, batch::kLogProbs),
               again = batch::at_trainable(rows, batch::kOldLogProbs);
    for (size_t i = 0; i < drawn.size(); ++i) {
      const double difference = std::abs(double{drawn[i]} - again[i]);
      largest = std::max(largest, difference);
      sum += difference;
    }
    tokens += drawn.size();
  }
  if (tokens == 0) return;
  metrics_.push_back({"rollout/rounding_logprob_abs_max", largest, flow::Reduce::kMax});
  const auto weight = static_cast<double>(tokens);
  metrics_.push_back({"rollout/rounding_logprob_abs_mean", sum / weight, flow::Reduce::kMean, weight});
}

void TrainerModule::report(const train::UpdateReport& update) {
  using flow::Reduce;
  if (speaks_) {
    metrics_.push_back({prefix_ + "/loss", update.loss});
    metrics_.push_back({prefix_ + "/grad_norm", update.grad_norm});
    metrics_.push_back({prefix_ + "/lr", update.learning_rate, Reduce::kLast});
    metrics_.push_back({prefix_ + "/updates", 1, Reduce::kSum});
    report_routers(update.routers);
  }
  metrics_.push_back({"train/tokens", static_cast<double>(update.tokens), Reduce::kSum});
  if (!drawn()) return;
  const train::Mismatch& m = update.mismatch;
  const auto compared = static_cast<double>(m.tokens_compared);
  metrics_.push_back({"mismatch/tokens_compared", compared, Reduce::kSum});
  metrics_.push_back({"mismatch/tokens_other_version", static_cast<double>(m.tokens_other_version), Reduce::kSum});
  metrics_.push_back({"mismatch/logprob_abs_max", m.log_prob_abs_max, Reduce::kMax});
  if (compared > 0)
    metrics_.push_back({"mismatch/logprob_abs_mean", m.log_prob_abs_sum / compared, Reduce::kMean, compared});
  report_agreement(m.routes);
  stop_above_limit(m);
}

void TrainerModule::report_agreement(const model::RouterAgreement& routes) {
  if (routes.compared == 0) return;
  metrics_.push_back({"mismatch/routes_compared", static_cast<double>(routes.compared), flow::Reduce::kSum});
  metrics_.push_back({"mismatch/routes_differ", static_cast<double>(routes.differing), flow::Reduce::kSum});
}

void TrainerModule::report_routers(const train::RouterReport& routers) {
  if (routers.tokens == 0) return;
  metrics_.push_back({prefix_ + "/router_aux_loss", routers.balance});
  metrics_.push_back({prefix_ + "/router_z_loss", routers.z});
  metrics_.push_back({prefix_ + "/router_busiest_share", routers.busiest_share, flow::Reduce::kMax});
  metrics_.push_back({prefix_ + "/router_spread", routers.spread});
}

void TrainerModule::stop_above_limit(const train::Mismatch& m) const {
  if (m.log_prob_abs_max > mismatch_limit_)
    throw base::GuardError(base::expectation("mismatch/logprob_abs_max", fmt::format("at most {}", mismatch_limit_),
                                             fmt::format("{} over {} tokens", m.log_prob_abs_max, m.tokens_compared),
                                             "a larger train.mismatch_limit only if another engine generates"));
}

void TrainerModule::save_checkpoint(const std::string& directory, int64_t) {
  if (train::MovingAverage* average = learner_->average()) {
    const train::AverageInPlace in_place(*average);
    write_model(directory + "-ema");
  }
  write_model(directory);
}

void TrainerModule::write_model(const std::string& directory) const {
  const model::Weights& weights = *decoder().weights;
  if (weights.options().lora.on()) model::save_peft(weights, directory + "/adapter", host::base_directory(path_));
  std::filesystem::create_directories(directory);
  model::save_huggingface(weights, directory, form_);
  if (!weights.options().ranks.writes()) return;
  text::load_tokenizer(path_)->save(directory);
  text::save_chat_template(options().chat_template, directory);  // whoever loads the model renders as it was trained
}

std::vector<flow::Metric> TrainerModule::metrics() { return std::exchange(metrics_, {}); }

void TrainerModule::save(base::StateWriter& out) const { learner_->save(out); }
void TrainerModule::load(base::StateReader& in) { learner_->load(in); }

}  // namespace collimate::rlhf
