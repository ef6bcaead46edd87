#include "collimate/rlhf/types/loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "collimate/base/error.h"

namespace collimate::rlhf {

using batch::kTrainable;

LossContext::LossContext(const Batch& rows, Quantities quantities, GlobalCounts counts, batch::Surveys surveys)
    : rows_(rows), quantities_(std::move(quantities)), counts_(counts), surveys_(std::move(surveys)) {
  std::vector<int64_t> row_of_token;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    int64_t count = 0;
    for (uint8_t trainable : rows.row(kTrainable, r)) count += trainable != 0;
    token_counts_.push_back(count);
    row_of_token.insert(row_of_token.end(), count, r);
  }
  row_of_token_ = at::empty({static_cast<int64_t>(row_of_token.size())}, at::kLong);
  std::copy(row_of_token.begin(), row_of_token.end(), row_of_token_.data_ptr<int64_t>());
}

at::Tensor LossContext::per_token(const Key<float>& key) const {
  at::Tensor out = at::empty({row_of_token_.size(0)}, at::kFloat);
  float* to = out.data_ptr<float>();
  for (int64_t r = 0; r < rows_.rows(); ++r) {
    const auto values = rows_.row(key, r);
    const auto trainable = rows_.row(kTrainable, r);
    if (values.size() != trainable.size())
      throw base::InputError(
          base::expectation("loss", fmt::format("{} entries in row {} of \"{}\"", trainable.size(), r, key.name),
                            std::to_string(values.size())));
    for (size_t t = 0; t < values.size(); ++t)
      if (trainable[t] != 0) *to++ = values[t];
  }
  return out;
}

at::Tensor LossContext::per_row(const Key<float>& key) const {
  at::Tensor out = at::empty({rows_.rows()}, at::kFloat);
  for (int64_t r = 0; r < rows_.rows(); ++r) out.data_ptr<float>()[r] = rows_.get(key, r);
  return out;
}

at::Tensor LossContext::row_sum(const at::Tensor& tokens) const {
  return at::zeros({rows_.rows()}, at::kFloat).index_add(0, row_of_token_, tokens);
}

at::Tensor LossContext::to_tokens(const at::Tensor& rows) const { return rows.index_select(0, row_of_token_); }

at::Tensor LossContext::row_tokens() const {
  at::Tensor out = at::empty({rows_.rows()}, at::kFloat);
  for (int64_t r = 0; r < rows_.rows(); ++r) out.data_ptr<float>()[r] = static_cast<float>(token_counts_[r]);
  return out;
}

void LossContext::metric(const std::string& name, const at::Tensor& numerator, double denominator) {
  auto& [sum, count] = metrics_[name];
  sum += numerator.detach().item<double>();
  count += denominator;
}

void LossContext::token_mean(const std::string& name, const at::Tensor& tokens) {
  metric(name, tokens.detach().to(at::kDouble).sum(), static_cast<double>(tokens.numel()));
}

void LossContext::row_mean(const std::string& name, const at::Tensor& rows) {
  metric(name, rows.detach().to(at::kDouble).sum(), static_cast<double>(rows.numel()));
}

}  // namespace collimate::rlhf
