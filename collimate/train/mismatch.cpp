#include "collimate/train/mismatch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "collimate/batch/standard_keys.h"
#include "collimate/batch/trainable.h"

namespace collimate::train {

void compare(const Batch& rows, std::span<const float> log_probs, uint64_t version, Mismatch& mismatch) {
  if (!rows.has(batch::kWeightsVersion.name) || !rows.has(batch::kLogProbs.name)) return;
  const auto& column = rows.has(batch::kOldLogProbs.name) ? batch::kOldLogProbs : batch::kLogProbs;
  auto now = log_probs.begin();
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto trainable = rows.row(batch::kTrainable, r);
    const auto recorded = rows.row(column, r);
    const auto versions = rows.row(batch::kWeightsVersion, r);
    for (size_t t = 0; t < trainable.size(); ++t) {
      if (trainable[t] == 0) continue;
      double difference = std::abs(static_cast<double>(*now++) - recorded[t]);
      if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
      if (versions[t] != static_cast<int64_t>(version)) {
        ++mismatch.tokens_other_version;
        continue;
      }
      ++mismatch.tokens_compared;
      mismatch.log_prob_abs_sum += difference;
      mismatch.log_prob_abs_max = std::max(mismatch.log_prob_abs_max, difference);
    }
  }
}

namespace {

bool drawn_by(const Batch& rows, uint64_t version) {
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto trainable = rows.row(batch::kTrainable, r);
    const auto versions = rows.row(batch::kWeightsVersion, r);
    for (size_t t = 0; t < trainable.size(); ++t)
      if (trainable[t] != 0 && versions[t] != static_cast<int64_t>(version)) return false;
  }
  return true;
}

}  // namespace

void compare(const Batch& rows, const model::RouterAgreement& routes, uint64_t version, Mismatch& mismatch) {
  const bool told = routes.compared > 0 && rows.has(batch::kWeightsVersion.name);
  if (!told || !drawn_by(rows, version)) return;
  mismatch.routes.compared += routes.compared;
  mismatch.routes.differing += routes.differing;
}

model::RouterAgreement sum_agreement(const model::ContextRanks& ranks, const model::RouterAgreement& mine) {
  const auto sum = [&](int64_t count) { return static_cast<int64_t>(ranks.sum(static_cast<uint64_t>(count))); };
  return {sum(mine.compared), sum(mine.differing)};
}

Mismatch check(model::Model& model, const Batch& rows, ScoringOptions options) {
  model::RouterAgreement routes;
  options.agreement = &routes;
  static const Key<float> now{.name = "log_probs_now", .ragged = true};  // [L]
  const std::vector<float> log_probs = batch::at_trainable(with_log_probs(model, rows, now, options), now);
  const std::vector<double> told = model.weights().stages().sum(std::vector{
      static_cast<double>(routes.compared), static_cast<double>(routes.differing)});  // each stage has some routers
  routes = {static_cast<int64_t>(told[0]), static_cast<int64_t>(told[1])};
  Mismatch mismatch;
  compare(rows, log_probs, model.weights().version(), mismatch);
  compare(rows, sum_agreement(options.context, routes), model.weights().version(), mismatch);
  return mismatch;
}

}  // namespace collimate::train
