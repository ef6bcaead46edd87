#include "collimate/train/learner.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/tensor/autograd.h"
#include "collimate/tensor/results.h"
#include "collimate/train/head_rows.h"
#include "collimate/train/micro_batch.h"

namespace collimate::train {
namespace {

using at::Tensor;
using batch::GlobalCounts;
using batch::Quantities;

// One micro-batch on its way through forward, loss and backward.
class MicroStep {
 public:
  MicroStep(model::Model& model, const LearnerOptions& options, const model::ContextRanks& context, const Batch& rows)
      : model_(model), options_(options), rows_(rows), packed_(pack_rows(rows, options.routes, context)) {
    packed_.tokens.agreement = &routes_;
  }

  double run(const Objective& objective, const GlobalCounts& counts, const batch::Surveys& surveys, RouterLoss& routers,
             DataRanks& ranks) {
    forward(objective.needs);
    routers.apply(*record_);
    const Tensor loss = objective.loss(rows_, leaves_, counts, surveys);
    backward(loss, ranks);
    return loss.item<double>();
  }

  void survey(RouterLoss& routers) {
    const base::FaultPhase phase("training");
    forward();
    routers.add(*record_);
  }

  std::vector<Tensor> survey(const Objective& objective) {
    forward(objective.needs);
    return objective.survey(rows_, leaves_);
  }

  const PackedRows& packed() const { return packed_; }
  const Quantities& quantities() const { return leaves_; }
  const model::RouterAgreement& routes() const { return routes_; }

 private:
  void forward(const batch::QuantityNeeds& needs) {
    const base::FaultPhase phase("training");
    forward();
    compute_quantities(needs);
  }
  void forward() { hidden_ = model_.forward_train(packed_.tokens, options_.recompute, record_); }

  void compute_quantities(const batch::QuantityNeeds& needs) {
    if (needs.log_probs || needs.entropy || needs.values) {
      predicted_ = HeadRows(packed_.predictors, packed_.tokens.cut);
      predictors_ = tensor::tensor_beside(hidden_, predicted_.rows());
      predicting_ = hidden_.index_select(0, predictors_);
    }
    if (needs.log_probs || needs.entropy) {
      request_ = {predicting_, predicted_.own(packed_.targets), options_.temperature, needs.entropy, /*record=*/true};
      model::LogProbResult result = model_.log_probs(request_);
      log_prob_record_ = std::move(result.record);
      leaves_.log_probs = leaf(predicted_, result.log_probs);
      if (needs.entropy) leaves_.entropy = leaf(predicted_, result.entropy);
    }
    if (needs.values) leaves_.values = leaf(predicted_, model_.scores(predicting_));
    if (needs.row_scores) {
      ended_ = HeadRows(packed_.last_tokens, packed_.tokens.cut);
      last_ = tensor::tensor_beside(hidden_, ended_.rows());
      ending_ = hidden_.index_select(0, last_);
      leaves_.row_scores = leaf(ended_, model_.scores(ending_));
    }
  }
  Tensor leaf(const HeadRows& of, const Tensor& values) const {
    return tensor::make_leaf(of.gather(model_.exec(), values));
  }

  // Goes from the loss to the leaves by autograd, from there to hidden states and weights by our own backward.
  void backward(const Tensor& loss, DataRanks& ranks) {
    const Quantities gradient = leaf_gradients(loss);
    Tensor hidden_gradient = tensor::empty_result(model_.exec(), hidden_.sizes()).zero_();
    if (leaves_.log_probs.defined()) {
      const Tensor part = model_.log_probs_backward(request_, predicted_.own(gradient.log_probs),
                                                    predicted_.own(gradient.entropy), log_prob_record_);
      log_prob_record_ = {};
      hidden_gradient.index_add_(0, predictors_, part);
    }
    if (leaves_.values.defined())
      hidden_gradient.index_add_(0, predictors_, model_.scores_backward(predicting_, predicted_.own(gradient.values)));
    if (leaves_.row_scores.defined())
      hidden_gradient.index_add_(0, last_, model_.scores_backward(ending_, ended_.own(gradient.row_scores)));
    model_.backward(std::move(record_), hidden_gradient, [&](int segment) { ranks.segment_done(segment); });
  }

  Quantities leaf_gradients(const Tensor& loss) const {
    std::vector<Tensor> leaves;
    for (const Tensor& leaf : {leaves_.log_probs, leaves_.entropy, leaves_.values, leaves_.row_scores})
      if (leaf.defined()) leaves.push_back(leaf);
    std::vector<Tensor> gradients = tensor::gradients_of(loss, leaves);
    auto next = gradients.begin();
    Quantities out;
    if (leaves_.log_probs.defined()) out.log_probs = *next++;
    if (leaves_.entropy.defined()) out.entropy = *next++;
    if (leaves_.values.defined()) out.values = *next++;
    if (leaves_.row_scores.defined()) out.row_scores = *next++;
    return out;
  }

  model::Model& model_;
  const LearnerOptions& options_;
  const Batch& rows_;
  PackedRows packed_;
  model::RouterAgreement routes_;
  std::unique_ptr<model::ForwardRecord> record_;
  HeadRows predicted_, ended_;
  Tensor hidden_, predictors_, predicting_, last_, ending_;
  model::LogProbRequest request_;
  model::LogProbRecord log_prob_record_;
  Quantities leaves_;
};

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
      optimizer_(model.weights(), shares_of(model.weights(), ranks_), options_.adam, exec) {}

UpdateReport Learner::accumulate(const Batch& rows, const Objective& objective, const GlobalCounts& counts) {
  UpdateReport report;
  report.rows = rows.rows();
  report.trainable_tokens = static_cast<int64_t>(count_rows(rows).tokens);
  RouterLoss routers(model_.shape(), options_.routers, ranks_.group(), options_.deadline_seconds);
  report.loss = train_rows(rows, objective, counts, routers, report);
  if (ranks_.have_own_rows()) report.loss = ranks_.sum_of_rows({static_cast<float>(report.loss)})[0];
  report.routers = routers.report();
  report.loss += routers.loss();
  report.grad_norm = ranks_.gradient_norm();
  return report;
}

std::vector<Batch> Learner::micro_batches(const Batch& rows, const batch::QuantityNeeds& needs) const {
  std::vector<Batch> parts;
  for (const RowRange& range :
       split_rows(rows, options_.micro_batch_tokens, needs.rows_per_unit, options_.micro_batch_rows)) {
    Batch part = rows.slice(range.begin, range.end);
    if (needs.row_scores || count_rows(part).tokens > 0)  // else all cut at their limit and masked, say
      parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<batch::Surveys> Learner::take_surveys(std::span<const Batch> parts, const Objective& objective) {
  std::vector<batch::Surveys> by_part(parts.size(), batch::Surveys(objective.surveys));
  if (objective.surveys == 0) return by_part;
  std::vector<std::vector<float>> lists(objective.surveys);
  Tensor told_of;  // one micro-batch's numbers
  for (size_t p = 0; p < parts.size(); ++p) {
    const std::vector<Tensor> told = MicroStep(model_, options_, context_, parts[p]).survey(objective);
    for (size_t i = 0; i < lists.size(); ++i) {
      by_part[p][i].begin = static_cast<int64_t>(lists[i].size());
      told_of = told.at(i).contiguous();
      const tensor::HostTensor numbers(model_.exec(), told_of);
      lists[i].insert(lists[i].end(), numbers.floats().begin(), numbers.floats().end());
    }
    if (options_.progress) options_.progress();
  }
  for (size_t i = 0; i < lists.size(); ++i) {
    int64_t begin = 0;
    const Tensor all = tensor::tensor_beside(told_of, ranks_.join(lists[i], begin));
    for (batch::Surveys& surveys : by_part) surveys[i] = {all, surveys[i].begin + begin};
  }
  return by_part;
}

void Learner::survey_routers(std::span<const Batch> parts, RouterLoss& routers) {
  if (!routers.has_loss() || (parts.size() == 1 && ranks_.group() == nullptr)) return;
  for (const Batch& part : parts) {
    MicroStep(model_, options_, context_, part).survey(routers);
    if (options_.progress) options_.progress();
  }
  routers.close();
}

double Learner::train_rows(const Batch& rows, const Objective& objective, const GlobalCounts& counts,
                           RouterLoss& routers, UpdateReport& report) {
  double loss = 0;
  const std::vector<Batch> parts = micro_batches(rows, objective.needs);
  const std::vector<batch::Surveys> surveys = take_surveys(parts, objective);
  survey_routers(parts, routers);
  ranks_.expect(static_cast<int64_t>(parts.size()));
  for (size_t p = 0; p < parts.size(); ++p) {
    const Batch& part = parts[p];
    MicroStep micro(model_, options_, context_, part);
    loss += micro.run(objective, counts, surveys[p], routers, ranks_);
    if (const Tensor& now = micro.quantities().log_probs; now.defined())
      compare(part, tensor::HostTensor(model_.exec(), now.detach()).floats(), model_.weights().version(),
              report.mismatch);
    compare(part, sum_agreement(context_, micro.routes()), model_.weights().version(), report.mismatch);
    report.tokens += micro.packed().row_tokens;
    ++report.micro_batches;
    if (options_.progress) options_.progress();
  }
  ranks_.reduce_gradients();
  routers.close();
  return loss;
}

UpdateReport Learner::update(const Batch& rows, const Objective& objective) {
  ranks_.zero_gradients();
  const Batch sorted = rows.gather(row_order(rows));
  UpdateReport report = accumulate(sorted, objective, ranks_.sum_counts(count_rows(sorted)));
  if (!std::isfinite(report.loss) || !std::isfinite(report.grad_norm))
    throw base::GuardError(base::expectation(
        "train", "a finite loss and gradient",
        fmt::format("loss {} and gradient norm {} at update {}", report.loss, report.grad_norm, steps() + 1),
        fmt::format("a lower train.learning_rate, or look at the {} of this iteration",
                    rows.has(batch::kAdvantages.name) ? "rewards" : "rows")));
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
    scale = std::min(1.0, options_.max_grad_norm / (norm + 1e-6));  // torch's clip_grad_norm_
  std::vector<const float*> gradients;
  for (int s = 0; s < model_.weights().segments(); ++s) gradients.push_back(ranks_.gradient(s));
  optimizer_.step(rate, scale, gradients);
  ranks_.gather_values();
  model_.weights().commit();
}

void Learner::save(base::StateWriter& out) const {
  const std::vector<model::Share> shares = ranks_.saved_shares();
  model_.weights().save(out, shares);
  optimizer_.save(out, shares);
}

void Learner::load(base::StateReader& in) {
  model_.weights().load(in);
  optimizer_.load(in);
}

}  // namespace collimate::train
