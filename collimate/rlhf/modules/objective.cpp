#include "collimate/rlhf/modules/objective.h"

namespace collimate::rlhf {

train::Objective objective_of(const Loss& loss, LossMetrics* metrics) {
  train::Objective objective{.needs = loss.needs, .surveys = loss.surveys};
  objective.loss = [&loss, metrics](const Batch& rows, const Quantities& quantities, const GlobalCounts& counts,
                                    const batch::Surveys& surveys) {
    LossContext context(rows, quantities, counts, surveys);
    at::Tensor value = loss.value(context);
    if (metrics == nullptr) return value;
    for (const auto& [name, sum] : context.metrics()) {
      (*metrics)[name].first += sum.first;
      (*metrics)[name].second += sum.second;
    }
    return value;
  };
  objective.survey = [&loss](const Batch& rows, const Quantities& quantities) {
    LossContext context(rows, quantities, {});
    return loss.survey(context);
  };
  return objective;
}

}  // namespace collimate::rlhf
