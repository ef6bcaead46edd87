#include "collimate/rlhf/types/loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/batch/teacher_keys.h"
#include "collimate/rlhf/types/divergence.h"
#include "collimate/tensor/results.h"

namespace collimate::rlhf {

using batch::kTrainable;

template <class T>
at::Tensor LossContext::on_device(const std::vector<T>& values) const {
  const Quantities& q = quantities_;
  const std::initializer_list<const at::Tensor*> all = {&q.log_probs,  &q.entropy,      &q.values,
                                                        &q.row_scores, &q.token_scores, &q.listed};
  const auto found = std::find_if(all.begin(), all.end(), [](const at::Tensor* one) { return one->defined(); });
  return tensor::tensor_beside(found == all.end() ? at::Tensor() : **found, std::span<const T>(values));
}

LossContext::LossContext(const Batch& rows, Quantities quantities, GlobalCounts counts, batch::Surveys surveys)
    : rows_(rows), quantities_(std::move(quantities)), counts_(counts), surveys_(std::move(surveys)) {
  std::vector<int64_t> row_of_token;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    int64_t count = 0;
    for (uint8_t trainable : rows.row(kTrainable, r)) count += trainable != 0;
    token_counts_.push_back(count);
    row_of_token.insert(row_of_token.end(), count, r);
  }
  row_of_token_ = on_device(row_of_token);
}

at::Tensor LossContext::per_token(const Key<float>& key) const {
  std::vector<float> out;
  for (int64_t r = 0; r < rows_.rows(); ++r) {
    const auto values = rows_.row(key, r);
    const auto trainable = rows_.row(kTrainable, r);
    if (values.size() != trainable.size())
      throw base::InputError(
          base::expectation("loss", fmt::format("{} entries in row {} of \"{}\"", trainable.size(), r, key.name),
                            std::to_string(values.size())));
    for (size_t t = 0; t < values.size(); ++t)
      if (trainable[t] != 0) out.push_back(values[t]);
  }
  return on_device(out);
}

at::Tensor LossContext::per_row(const Key<float>& key) const {
  std::vector<float> out;
  for (int64_t r = 0; r < rows_.rows(); ++r) out.push_back(rows_.get(key, r));
  return on_device(out);
}

at::Tensor LossContext::row_sum(const at::Tensor& tokens) const {
  return at::zeros({rows_.rows()}, tokens.options()).index_add(0, row_of_token_, tokens);
}

at::Tensor LossContext::to_tokens(const at::Tensor& rows) const { return rows.index_select(0, row_of_token_); }

at::Tensor LossContext::row_tokens() const {
  return on_device(std::vector<float>(token_counts_.begin(), token_counts_.end()));
}

at::Tensor LossContext::outcomes() const { return rlhf::outcomes(quantities_.listed, quantities_.rest); }

at::Tensor LossContext::teacher_rest() const { return on_device(batch::of_trained_tokens(rows_, batch::kTeacherRest)); }

at::Tensor LossContext::teacher_outcomes() const {
  const at::Tensor listed = on_device(batch::of_trained_tokens(rows_, batch::kTeacherLogProbs));
  return rlhf::outcomes(listed.view(quantities_.listed.sizes()), teacher_rest());
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
