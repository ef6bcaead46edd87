#include "collimate/train/head_rows.h"

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/tensor/results.h"

namespace collimate::train {

HeadRows::HeadRows(const std::vector<int64_t>& tokens, std::shared_ptr<const model::ContextCut> cut)
    : cut_(std::move(cut)) {
  if (cut_ == nullptr) {
    rows_ = tokens;
    return;
  }
  const model::ContextRanks& ranks = cut_->ranks();
  std::vector<int64_t> counts(static_cast<size_t>(ranks.ranks));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int owner = cut_->owner(tokens[i]);
    places_.push_back(base::at(counts, owner)++);
    if (owner != ranks.rank) continue;
    rows_.push_back(cut_->row_there(tokens[i]));
    own_.push_back(static_cast<int64_t>(i));
  }
  most_ = *std::ranges::max_element(counts);
  for (size_t i = 0; i < tokens.size(); ++i) places_[i] += cut_->owner(tokens[i]) * most_;
}

std::vector<int32_t> HeadRows::own(const std::vector<int32_t>& values, int64_t width) const {
  if (cut_ == nullptr) return values;
  std::vector<int32_t> some;
  some.reserve(own_.size() * static_cast<size_t>(width));
  for (const int64_t i : own_) some.insert(some.end(), values.begin() + i * width, values.begin() + (i + 1) * width);
  return some;
}

at::Tensor HeadRows::own(const at::Tensor& values) const {
  if (cut_ == nullptr || !values.defined()) return values;
  return values.index_select(0, tensor::tensor_beside(values, own_));
}

at::Tensor HeadRows::gather(const tensor::Exec& exec, const at::Tensor& values) const {
  if (cut_ == nullptr || most_ == 0) return values;
  const model::ContextRanks& ranks = cut_->ranks();
  std::vector<int64_t> sizes = values.sizes().vec();
  sizes.front() = ranks.ranks * most_;
  const at::Tensor all = tensor::empty_result(exec, sizes).zero_();
  all.narrow(0, ranks.rank * most_, values.size(0)).copy_(values);
  ranks.gather(exec, tensor::device_data(all), all.numel() / ranks.ranks);
  return all.index_select(0, tensor::tensor_beside(all, places_));
}

}  // namespace collimate::train
