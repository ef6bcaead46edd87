#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/rlhf/loss/list.h"

// Losses on rows small enough for a pocket calculator.
namespace collimate::rlhf {

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// A loss by its rows and name, with constants as a config has them.
inline Loss loss_with(const std::string& rows, const std::string& type, const nlohmann::json& options = {},
                      int64_t completion_tokens = 0) {
  LossSetting setting{.completion_tokens = completion_tokens};
  if (!options.is_null()) base::apply(options, "algorithm", setting.options);
  return make_loss(rows, type, setting);
}

// The loss of rows that are a whole update of their own.
inline double value_alone(const Loss& loss, const Batch& rows, const Quantities& quantities, GlobalCounts counts) {
  batch::Surveys surveys;
  LossContext asked(rows, quantities, counts);
  if (loss.surveys > 0)
    for (const at::Tensor& numbers : loss.survey(asked)) surveys.push_back({numbers, 0});
  LossContext context(rows, quantities, counts, surveys);
  return loss.value(context).item<double>();
}

// Two rows of a prompt token and two trained ones; sums of log-probs -3 and -5, of the reference -4 and -4.5.
class TwoRows : public ::testing::Test {
 protected:
  TwoRows() {
    rows_.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>{{0, 1, 1}, {0, 1, 1}});
    rows_.set_ragged(batch::kReferenceLogProbs, std::vector<std::vector<float>>{{0, -2, -2}, {0, -2.5F, -2}});
  }

  double value(const Loss& loss) const {
    return value_alone(loss, rows_, {.log_probs = at::tensor({-1.F, -2.F, -2.F, -3.F})}, {4, 2, 2});
  }

  Batch rows_;
};

}  // namespace collimate::rlhf
