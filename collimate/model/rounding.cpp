#include "collimate/model/rounding.h"

#include <cmath>

#include "collimate/tensor/ops/linear.h"

namespace collimate::model {

RoundingReport int8_rounding(const tensor::Exec& exec, const Weights& weights) {
  RoundingReport report;
  tensor::RoundingError all;
  for (size_t i = 0; i < weights.params().size(); ++i) {
    const shape::ParamSpec& spec = weights.params()[i];
    if (!shape::is_linear(weights.shape(), weights.params(), i)) continue;
    const float* values = weights.values(static_cast<int>(i)).data();
    const tensor::RoundingError one = tensor::int8_error(exec, values, spec.sizes[0], spec.sizes[1]);
    all.error += one.error;
    all.total += one.total;
    const double relative = one.total > 0 ? std::sqrt(one.error / one.total) : 0;
    if (relative <= report.most) continue;
    report.most = relative;
    report.most_of = spec.name;
  }
  report.relative = all.total > 0 ? std::sqrt(all.error / all.total) : 0;
  return report;
}

}  // namespace collimate::model
