#include "collimate/train/learner.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/tensor/autograd.h"
#include "collimate/tensor/results.h"
#include "collimate/train/micro_batch.h"
#include "collimate/train/micro_step.h"
#include "collimate/train/pipeline.h"
#include "collimate/train/stage.h"

namespace collimate::train {
namespace {

using at::Tensor;
using batch::GlobalCounts;

std::vector<model::Share> shares_of(const model::Weights& weights, const DataRanks& ranks) {
  std::vector<model::Share> shares;
  for (int s = 0; s < weights.segments(); ++s) shares.push_back(ranks.share(s));
  return shares;
}

}  // namespace

GlobalCounts count_rows(const Batch& rows) {
  GlobalCounts counts{.rows = static_cast<double>(rows.rows())};
  for (int64_t r = 0; r < rows.rows(); ++r)
    for (uint8_t trainable : rows.row(batch::kTrainable, r)) {
      counts.tokens += trainable != 0 ? 1 : 0;
      counts.chosen_tokens += trainable != 0 && r % 2 == 0 ? 1 : 0;
    }
  return counts;
}

Learner::Learner(model::Model& model, LearnerOptions options, tensor::Exec exec, const TrainingRanks& ranks)
    : model_(model),
      options_(std::move(options)),
      exec_(exec),
      context_(ranks.context),
      ranks_(model.weights(), exec, ranks, options_.zero, options_.deadline_seconds),
      optimizer_(model.weights(), shares_of(model.weights(), ranks_), options_.adam, exec, options_.away) {
  if (options_.ema > 0) average_.emplace(model.weights(), options_.ema, exec);
}

UpdateReport Learner::accumulate(const Batch& rows, const Objective& objective, const GlobalCounts& counts) {
  const UpdatePart part{rows, &objective, counts};
  return accumulate(std::span(&part, 1));
}

UpdateReport Learner::accumulate(std::span<const UpdatePart> parts) {
  UpdateReport report;
  report.rows = parts.front().rows.rows();
  report.trainable_tokens = static_cast<int64_t>(count_rows(parts.front().rows).tokens);
  RouterLoss routers(model_.shape(), options_.routers, ranks_.group(), options_.deadline_seconds, stages());
  report.loss = train_rows(parts, routers, report);
  if (ranks_.have_own_rows()) report.loss = ranks_.sum_of_rows({static_cast<float>(report.loss)})[0];
  join_stages(report);
  report.routers = routers.report();
  report.loss += routers.loss();
  report.grad_norm = ranks_.gradient_norm();
  return report;
}

// Sums the report over the stages: the last one knows the loss and log-probs, each the choices of its own routers.
void Learner::join_stages(UpdateReport& report) const {
  Mismatch& m = report.mismatch;
  std::vector<double> numbers = {report.loss,
                                 m.log_prob_abs_max,
                                 m.log_prob_abs_sum,
                                 static_cast<double>(m.tokens_compared),
                                 static_cast<double>(m.tokens_other_version),
                                 static_cast<double>(m.routes.compared),
                                 static_cast<double>(m.routes.differing)};
  numbers = stages().sum(numbers);
  report.loss = numbers[0];
  m = {.tokens_compared = static_cast<int64_t>(numbers[3]),
       .tokens_other_version = static_cast<int64_t>(numbers[4]),
       .log_prob_abs_max = numbers[1],
       .log_prob_abs_sum = numbers[2],
       .routes = {static_cast<int64_t>(numbers[5]), static_cast<int64_t>(numbers[6])}};
}

std::vector<Batch> Learner::micro_batches(const Batch& rows, const batch::QuantityNeeds& needs) const {
  std::vector<Batch> parts;
  for (const RowRange& range :
       split_rows(rows, options_.micro_batch_tokens, needs.rows_per_unit, options_.micro_batch_rows)) {
    Batch part = rows.slice(range.begin, range.end);
    if (needs.row_scores || count_rows(part).tokens > 0)  // else, say, all are cut at their limit and masked
      parts.push_back(std::move(part));
  }
  const auto all = static_cast<size_t>(ranks_.most_micro_batches(std::ssize(parts)));
  parts.resize(all, rows.slice(0, 0));
  return parts;
}

std::vector<batch::Surveys> Learner::take_surveys(std::span<const Batch> parts, const Objective& objective) {
  std::vector<batch::Surveys> by_part(parts.size(), batch::Surveys(objective.surveys));
  if (objective.surveys == 0) return by_part;
  std::vector<std::vector<float>> lists(objective.surveys);
  Tensor told_of;  // one micro-batch's numbers; shows on which device surveys lie
  run_forwards(parts, [&](size_t p, MicroStep& micro) {
    if (!micro.ends() || micro.rows().empty()) return;
    micro.compute_quantities(objective);
    const std::vector<Tensor> told = micro.survey(objective);
    for (size_t i = 0; i < lists.size(); ++i) {
      by_part[p][i].begin = static_cast<int64_t>(lists[i].size());
      told_of = told.at(i).contiguous();
      const tensor::HostTensor numbers(model_.exec(), told_of);
      lists[i].insert(lists[i].end(), numbers.floats().begin(), numbers.floats().end());
    }
  });
  if (!stages().place.is_last()) return by_part;
  for (size_t i = 0; i < lists.size(); ++i) {
    int64_t begin = 0;
    const Tensor all = tensor::tensor_beside(told_of, ranks_.join(lists[i], begin));
    for (batch::Surveys& surveys : by_part) surveys[i] = {all, surveys[i].begin + begin};
  }
  return by_part;
}

void Learner::survey_routers(std::span<const Batch> parts, RouterLoss& routers) {
  if (!routers.has_loss() || (parts.size() == 1 && ranks_.group() == nullptr && !stages().several())) return;
  run_forwards(parts, [&](size_t, MicroStep& micro) {
    if (!micro.rows().empty()) routers.add(micro.record());
  });
  routers.close();
}

std::optional<uint64_t> Learner::dropout_key() const {
  if (model_.weights().options().lora.dropout == 0) return std::nullopt;
  return base::mix(options_.seed, static_cast<uint64_t>(steps()));
}

RankRuns Learner::rank_runs() const {
  const shape::StageRank& place = stages().place;
  return {place.rank, place.ranks, place.runs};
}

void Learner::run_forwards(std::span<const Batch> parts, const Stage::Forwarded& forwarded) {
  const auto steps = forward_steps(rank_runs(), std::ssize(parts));
  Stage(model_, options_, context_, parts, dropout_key()).run(steps, [&](size_t number, MicroStep& micro) {
    forwarded(number, micro);
    if (options_.progress) options_.progress();
  });
}

namespace {

// Holds the micro-batches of all parts of an update, those of one part behind those of the other.
struct MixedBatches {
  std::vector<Batch> rows;
  std::vector<const UpdatePart*> of;  // by micro-batch, the part that it is of
  std::vector<batch::Surveys> surveys;

  void add(const UpdatePart& part, std::vector<Batch> batches, std::vector<batch::Surveys> surveyed) {
    for (size_t i = 0; i < batches.size(); ++i) {
      rows.push_back(std::move(batches[i]));
      of.push_back(&part);
      surveys.push_back(std::move(surveyed[i]));
    }
  }
};

}  // namespace

double Learner::train_rows(std::span<const UpdatePart> parts, RouterLoss& routers, UpdateReport& report) {
  double loss = 0;
  MixedBatches mixed;
  for (const UpdatePart& part : parts) {
    std::vector<Batch> batches = micro_batches(part.rows, part.objective->needs);
    std::vector<batch::Surveys> surveys = take_surveys(batches, *part.objective);
    mixed.add(part, std::move(batches), std::move(surveys));
  }
  survey_routers(mixed.rows, routers);
  const auto forwarded = [&](size_t p, MicroStep& micro) {
    if (micro.ends() && !micro.rows().empty()) micro.compute_quantities(*mixed.of[p]->objective);
  };
  const auto backward = [&](size_t p, MicroStep& micro, const Tensor& received) {
    if (micro.rows().empty()) return micro.backward(micro.ends() ? micro.stream() : received, ranks_);
    routers.apply(micro.record());
    Tensor gradient = received;
    if (micro.ends()) {
      const Tensor of_part = micro.loss(*mixed.of[p]->objective, mixed.of[p]->counts, mixed.surveys[p]);
      gradient = micro.hidden_gradient(of_part);
      loss += of_part.item<double>();
    }
    Tensor passed = micro.backward(gradient, ranks_);
    tell(micro, report);
    return passed;
  };
  const auto steps = training_steps(rank_runs(), std::ssize(mixed.rows));
  Stage(model_, options_, context_, mixed.rows, dropout_key()).run(steps, forwarded, backward);
  ranks_.reduce_gradients();
  routers.close();
  return loss;
}

void Learner::tell(const MicroStep& micro, UpdateReport& report) const {
  if (const Tensor& now = micro.quantities().log_probs; now.defined())
    compare(micro.rows(), tensor::HostTensor(model_.exec(), now.detach()).floats(), model_.weights().version(),
            report.mismatch);
  compare(micro.rows(), sum_agreement(context_, micro.routes()), model_.weights().version(), report.mismatch);
  if (options_.progress) options_.progress();
  if (micro.run() > 0) return;  // counted in its other run
  report.tokens += micro.packed().row_tokens;
  ++report.micro_batches;
}

UpdateReport Learner::update(const Batch& rows, const Objective& objective) { return update({{rows, &objective}}); }

UpdateReport Learner::update(std::vector<UpdatePart> parts) {
  ranks_.zero_gradients();
  for (UpdatePart& part : parts) {
    part.rows = part.rows.gather(row_order(part.rows));
    part.counts = ranks_.sum_counts(count_rows(part.rows));
  }
  UpdateReport report = accumulate(parts);
  if (!std::isfinite(report.loss) || !std::isfinite(report.grad_norm))
    throw base::GuardError(base::expectation(
        "train", "a finite loss and gradient",
        fmt::format("loss {} and gradient norm {} at update {}", report.loss, report.grad_norm, steps() + 1),
        fmt::format("a lower train.learning_rate, or look at the {} of this iteration",
                    parts.front().rows.has(batch::kAdvantages.name) ? "rewards" : "rows")));
  report.learning_rate = learning_rate(options_.schedule, steps());
  clip_and_step(report.learning_rate, report.grad_norm);
  return report;
}

double Learner::step(double rate) {
  const double norm = ranks_.gradient_norm();
  clip_and_step(rate, norm);
  return norm;
}

void Learner::clip_and_step(double rate, double norm) {
  double scale = 1.0;
  if (options_.max_grad_norm > 0)
    scale = std::min(1.0, options_.max_grad_norm / (norm + 1e-6));  // as torch's clip_grad_norm_
  std::vector<const float*> gradients;
  for (int s = 0; s < model_.weights().segments(); ++s) gradients.push_back(ranks_.gradient(s));
  optimizer_.step(rate, scale, gradients);
  ranks_.gather_values();
  if (average_) average_->update();
  model_.weights().commit();
}

void Learner::offload(tensor::AwayFile& file) {
  optimizer_.offload(file);
  if (average_) average_->offload(file);
  ranks_.drop_gradients();
  model_.release();
}

void Learner::restore(tensor::AwayFile& file) {
  optimizer_.restore(file);
  if (average_) average_->restore(file);
}

void Learner::save(base::StateWriter& out) const {
  const std::vector<model::Share> shares = ranks_.saved_shares();
  model_.weights().save(out, shares);
  optimizer_.save(out, shares);
  if (average_) average_->save(out, shares);
}

void Learner::load(base::StateReader& in) {
  model_.weights().load(in);
  optimizer_.load(in);
  if (average_) average_->load(in);
}

}  // namespace collimate::train
