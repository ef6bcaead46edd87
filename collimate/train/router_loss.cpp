#include "collimate/train/router_loss.h"

#include <algorithm>
#include <cmath>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/shape/mixture.h"
#include "collimate/tensor/ops/experts.h"

namespace collimate::train {

RouterLossOptions router_losses(const shape::ModelShape& shape, std::optional<double> balance, double z) {
  const shape::Experts* experts = shape::experts_of(shape);
  const bool possible = experts != nullptr && !experts->sigmoid;
  if (possible) return {balance.value_or(experts->balance), z};
  if (shape.head == shape::Head::kLanguageModel && (balance.value_or(0) != 0 || z != 0))
    throw base::InputError(base::expectation(
        balance.value_or(0) != 0 ? "train.router_aux_loss_coef" : "train.router_z_loss_coef",
        "a mixture whose experts are scored by a softmax",
        experts == nullptr ? "a model without experts" : "one whose scores are sigmoids", "leaving it out"));
  return {};
}

RouterLoss::RouterLoss(const shape::ModelShape& shape, const RouterLossOptions& options, comm::Group* group,
                       double deadline, const model::StageRanks& stages)
    : experts_(shape::experts_of(shape)), options_(options), group_(group), deadline_(deadline), stages_(stages) {
  if (experts_ == nullptr) return;
  routers_ = shape::routers_of(shape);
  load_.assign(static_cast<size_t>(routers_ * tensor::load_entries(*experts_)), 0.0F);
}

void RouterLoss::add(const model::ForwardRecord& record) {
  if (closed_ || experts_ == nullptr) return;
  const std::vector<float> more = model::Model::router_load(record);
  std::transform(load_.begin(), load_.end(), more.begin(), load_.begin(), std::plus<>());
}

void RouterLoss::apply(model::ForwardRecord& record) {
  add(record);
  if (!has_loss() || routed() == 0) return;
  std::vector<float> scores;
  for (int64_t e = 0; e < experts_->count; ++e)
    scores.push_back(
        static_cast<float>(options_.balance * static_cast<double>(experts_->count) * sum(e) / (routed() * routed())));
  model::Model::set_router_loss(record, scores, static_cast<float>(options_.z / routed()));
}

void RouterLoss::close() {
  if (!closed_ && experts_ != nullptr) {
    if (group_ != nullptr) group_->all_reduce(load_).wait(deadline_);
    stages_.sum(std::span(load_));
  }
  closed_ = true;
}

double RouterLoss::sum(int64_t router, int64_t entry) const {
  return base::at(load_, router * tensor::load_entries(*experts_) + entry);
}

double RouterLoss::sum(int64_t entry) const {
  double total = 0;
  for (int64_t router = 0; router < routers_; ++router) total += sum(router, entry);
  return total;
}

double RouterLoss::routed() const {
  double rows = 0;
  for (int64_t e = 0; e < experts_->count; ++e) rows += sum(e);
  return rows / static_cast<double>(experts_->per_token);
}

double RouterLoss::balance() const {
  double products = 0;
  for (int64_t e = 0; e < experts_->count; ++e) products += sum(e) * sum(experts_->count + e);
  return static_cast<double>(experts_->count) * products / (routed() * routed());
}

double RouterLoss::z() const { return sum(2 * experts_->count) / routed(); }

double RouterLoss::loss() const {
  if (!has_loss() || routed() == 0) return 0;
  return options_.balance * balance() + options_.z * z();
}

RouterReport RouterLoss::report() const {
  if (experts_ == nullptr || routed() == 0) return {};
  RouterReport report{
      .tokens = static_cast<int64_t>(routed() / static_cast<double>(routers_)), .balance = balance(), .z = z()};
  const double rows = static_cast<double>(report.tokens * experts_->per_token);
  const double mean = rows / static_cast<double>(experts_->count);
  for (int64_t router = 0; router < routers_; ++router) {
    double squares = 0;
    for (int64_t e = 0; e < experts_->count; ++e) {
      report.busiest_share = std::max(report.busiest_share, sum(router, e) / rows);
      squares += std::pow(sum(router, e) - mean, 2) / static_cast<double>(experts_->count);
    }
    report.spread += std::sqrt(squares) / mean / static_cast<double>(routers_);
  }
  return report;
}

}  // namespace collimate::train
