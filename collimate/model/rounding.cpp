#include "collimate/model/rounding.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "collimate/tensor/ops/linear.h"

namespace collimate::model {
namespace {

constexpr int64_t kRows = 1024;  // of a matrix at a time

}  // namespace

RoundingReport int8_rounding(const tensor::Exec& exec, const Weights& weights) {
  RoundingReport report;
  tensor::RoundingError all;
  std::vector<float> values;
  for (size_t i = 0; i < weights.params().size(); ++i) {
    const shape::ParamSpec& spec = weights.params()[i];
    if (!shape::is_linear(weights.shape(), spec) || compute_of(weights.options(), spec) != ComputeType::kInt8) continue;
    tensor::RoundingError one;
    for (int64_t row = 0; row < spec.sizes[0]; row += kRows) {
      const int64_t rows = std::min(kRows, spec.sizes[0] - row);
      values.resize(static_cast<size_t>(rows * spec.sizes[1]));
      weights.read(static_cast<int>(i), row, values);
      const tensor::RoundingError part = tensor::int8_error(exec, values.data(), rows, spec.sizes[1]);
      one.error += part.error;
      one.total += part.total;
    }
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
