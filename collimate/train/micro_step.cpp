#include "collimate/train/micro_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/teacher_keys.h"
#include "collimate/tensor/autograd.h"
#include "collimate/tensor/results.h"

namespace collimate::train {

using at::Tensor;
using batch::Quantities;

namespace {

// Returns what is done with recorded routes. Texts that are trained beside samples were not drawn, so that nobody
// recorded their tokens' experts.
RecordedRoutes recorded_routes(const Batch& rows, RecordedRoutes asked) {
  return rows.has(batch::kLogProbs.name) || rows.has(batch::kRoutedExperts.name) ? asked : RecordedRoutes::kIgnored;
}

}  // namespace

MicroStep::MicroStep(model::Model& model, const LearnerOptions& options, const model::ContextRanks& context,
                     const Batch& rows, std::optional<uint64_t> noise)
    : model_(model),
      options_(options),
      rows_(rows),
      packed_(pack_rows(rows, recorded_routes(rows, options.routes), context, noise)) {
  packed_.tokens.agreement = &routes_;
}

void MicroStep::forward(const Tensor& stream, int run) {
  const base::FaultPhase phase("training");
  run_ = run;
  hidden_ = model_.forward_train(packed_.tokens, options_.recompute, record_, stream, run);
}

int64_t MicroStep::own_tokens() const {
  return packed_.tokens.cut == nullptr ? std::ssize(packed_.tokens.ids) : packed_.tokens.cut->own_rows();
}

Tensor MicroStep::leaf(const HeadRows& of, const Tensor& values) const {
  return tensor::make_leaf(of.gather(model_.exec(), values));
}

// Let x be the logits divided by the temperature and Z(x) = log Σ exp x. Then log p of a token is its x - Z(x), and
// half the temperature doubles x. So log Σ p² = Z(2x) - 2 Z(x) is twice log p minus the log-prob at half of it.
Tensor MicroStep::log_collision(const Tensor& log_probs) const {
  model::LogProbRequest sharper = request_;
  sharper.temperature *= 0.5F;
  sharper.entropy = sharper.record = false;
  return log_probs * 2.0 - model_.log_probs(sharper).log_probs;
}

void MicroStep::set_listed(const model::LogProbResult& result) {
  leaves_.listed = leaf(predicted_, result.listed);
  leaves_.rest = leaf(predicted_, result.rest);
}

// Listed tokens at another temperature have a request of their own. The backward computes its logits again, as there is
// memory for the logits of one request.
void MicroStep::compute_listed(const batch::QuantityNeeds& needs) {
  const std::vector<int64_t>& inner = rows_.column(batch::kTeacherIds.name).schema.inner;
  COLLIMATE_CHECK(inner.size() == 1, "the ids of a list for each token");
  const bool together = needs.listed_temperature == request_.temperature;
  if (!together) listed_request_ = {predicting_, request_.targets, needs.listed_temperature, false, /*record=*/true};
  model::LogProbRequest& asked = together ? request_ : listed_request_;
  asked.listed_count = inner.front();
  asked.listed_ids = predicted_.own(batch::of_trained_tokens(rows_, batch::kTeacherIds), inner.front());
  if (together) return;
  model::LogProbResult result = model_.log_probs(listed_request_);
  listed_record_ = std::move(result.record);
  listed_record_.logits.reset();
  set_listed(result);
}

void MicroStep::compute_quantities(const Objective& objective) {
  const batch::QuantityNeeds& needs = objective.needs;
  const base::FaultPhase phase("training");
  const bool needs_log_probs = needs.log_probs || needs.entropy || needs.listed || needs.log_collision;
  if (needs_log_probs || needs.values) {
    predicted_ = HeadRows(packed_.predictors, packed_.tokens.cut);
    predictors_ = tensor::tensor_beside(hidden_, predicted_.rows());
    predicting_ = hidden_.index_select(0, predictors_);
  }
  if (needs_log_probs) {
    const float temperature = objective.temperature.value_or(options_.temperature);
    request_ = {predicting_, predicted_.own(packed_.targets), temperature, needs.entropy, /*record=*/true};
    if (needs.listed) compute_listed(needs);
    model::LogProbResult result = model_.log_probs(request_);
    if (request_.listed_count > 0) set_listed(result);
    log_prob_record_ = std::move(result.record);
    leaves_.log_probs = leaf(predicted_, result.log_probs);
    if (needs.entropy) leaves_.entropy = leaf(predicted_, result.entropy);
    if (needs.log_collision) leaves_.log_collision = predicted_.gather(model_.exec(), log_collision(result.log_probs));
  }
  if (needs.values) leaves_.values = leaf(predicted_, model_.scores(predicting_));
  if (needs.token_scores) {
    trained_ = HeadRows(packed_.trained, packed_.tokens.cut);
    trained_rows_ = tensor::tensor_beside(hidden_, trained_.rows());
    trained_hidden_ = hidden_.index_select(0, trained_rows_);
    leaves_.token_scores = leaf(trained_, model_.scores(trained_hidden_));
  }
  if (needs.row_scores) {
    ended_ = HeadRows(packed_.last_tokens, packed_.tokens.cut);
    last_ = tensor::tensor_beside(hidden_, ended_.rows());
    ending_ = hidden_.index_select(0, last_);
    leaves_.row_scores = leaf(ended_, model_.scores(ending_));
  }
}

Tensor MicroStep::hidden_gradient(const Tensor& loss) {
  const Quantities gradient = leaf_gradients(loss);
  Tensor of_hidden = tensor::empty_result(model_.exec(), hidden_.sizes()).zero_();
  if (leaves_.log_probs.defined()) {
    add_head_gradients(gradient, of_hidden);
  }
  if (leaves_.values.defined())
    of_hidden.index_add_(0, predictors_, model_.scores_backward(predicting_, predicted_.own(gradient.values)));
  if (leaves_.token_scores.defined())
    of_hidden.index_add_(0, trained_rows_,
                         model_.scores_backward(trained_hidden_, trained_.own(gradient.token_scores)));
  if (leaves_.row_scores.defined())
    of_hidden.index_add_(0, last_, model_.scores_backward(ending_, ended_.own(gradient.row_scores)));
  return of_hidden;
}

void MicroStep::add_head_gradients(const Quantities& gradient, const Tensor& of_hidden) {
  model::LogProbGradients of_drawn = {predicted_.own(gradient.log_probs), predicted_.own(gradient.entropy)};
  model::LogProbGradients of_listed = {.listed = predicted_.own(gradient.listed),
                                       .rest = predicted_.own(gradient.rest)};
  if (listed_request_.listed_count > 0) {
    of_listed.log_probs = at::zeros_like(of_drawn.log_probs);
    const model::LogProbRecord record = std::exchange(listed_record_, {});
    of_hidden.index_add_(0, predictors_, model_.log_probs_backward(listed_request_, of_listed, record));
  } else {
    of_drawn.listed = of_listed.listed, of_drawn.rest = of_listed.rest;
  }
  const model::LogProbRecord record = std::exchange(log_prob_record_, {});
  of_hidden.index_add_(0, predictors_, model_.log_probs_backward(request_, of_drawn, record));
}

Quantities MicroStep::leaf_gradients(const Tensor& loss) const {
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : {leaves_.log_probs, leaves_.entropy, leaves_.listed, leaves_.rest, leaves_.values,
                             leaves_.token_scores, leaves_.row_scores})
    if (leaf.defined()) leaves.push_back(leaf);
  std::vector<Tensor> gradients = tensor::gradients_of(loss, leaves);
  auto next = gradients.begin();
  Quantities out;
  if (leaves_.log_probs.defined()) out.log_probs = *next++;
  if (leaves_.entropy.defined()) out.entropy = *next++;
  if (leaves_.listed.defined()) out.listed = *next++, out.rest = *next++;
  if (leaves_.values.defined()) out.values = *next++;
  if (leaves_.token_scores.defined()) out.token_scores = *next++;
  if (leaves_.row_scores.defined()) out.row_scores = *next++;
  return out;
}

}  // namespace collimate::train
