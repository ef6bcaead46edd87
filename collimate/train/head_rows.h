#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "collimate/model/context_cut.h"

namespace collimate::train {

// Tokens of a batch whose hidden states a head reads. Where context ranks compute the batch together, each one has some
// of them; what its head gives is brought to all, so that every rank computes the same loss of the same numbers.
class HeadRows {
 public:
  HeadRows() = default;
  // `tokens` [N]: rows of the batch. `cut`: null where one rank has all.
  HeadRows(const std::vector<int64_t>& tokens, std::shared_ptr<const model::ContextCut> cut);

  // The rows of this rank's hidden states.
  const std::vector<int64_t>& rows() const { return rows_; }
  // This rank's part of what all N have, `width` numbers each.
  std::vector<int32_t> own(const std::vector<int32_t>& values, int64_t width = 1) const;
  at::Tensor own(const at::Tensor& values) const;  // undefined of an undefined one
  // The values of all N, [N] or [N, width], to which each rank gives those of its part.
  at::Tensor gather(const tensor::Exec& exec, const at::Tensor& values) const;

 private:
  std::shared_ptr<const model::ContextCut> cut_;
  std::vector<int64_t> rows_, own_;  // own_: which of the N this rank has
  std::vector<int64_t> places_;      // [N] among the ranks' values, where each rank has room for most_
  int64_t most_ = 0;
};

}  // namespace collimate::train
