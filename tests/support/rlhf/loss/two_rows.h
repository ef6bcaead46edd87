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

// Two rows of a prompt token and two trained ones; sums of log-probs -3 and -5, of the reference -4 and -4.5.
class TwoRows : public ::testing::Test {
 protected:
  TwoRows() {
    rows_.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>{{0, 1, 1}, {0, 1, 1}});
    rows_.set_ragged(batch::kReferenceLogProbs, std::vector<std::vector<float>>{{0, -2, -2}, {0, -2.5F, -2}});
  }

  double value(const Loss& loss) const {
    LossContext context(rows_, {.log_probs = at::tensor({-1.F, -2.F, -2.F, -3.F})}, {4, 2});
    return loss.value(context).item<double>();
  }

  Batch rows_;
};

}  // namespace collimate::rlhf
