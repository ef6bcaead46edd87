#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "collimate/model/context_cut.h"

namespace collimate::train {

// Says of which tokens of a batch a head reads the hidden states. Where context ranks compute the batch together, each
// rank has some of these tokens. What its head gives is brought to all, so that every rank computes the same loss of
// the same numbers.
class HeadRows {
 public:
  HeadRows() = default;
  // `tokens` [N] are rows of the batch. `cut` is null where one rank has all tokens.
  HeadRows(const std::vector<int64_t>& tokens, std::shared_ptr<const model::ContextCut> cut);

  // Returns the tokens' rows in this rank's hidden states.
  const std::vector<int64_t>& rows() const { return rows_; }
  // Returns the values of this rank's tokens from those of all N, `width` numbers each.
  std::vector<int32_t> own(const std::vector<int32_t>& values, int64_t width = 1) const;
  at::Tensor own(const at::Tensor& values) const;  // undefined values stay undefined
  // Returns the values of all N tokens, [N] or [N, width]; each rank gives those of its own tokens.
  at::Tensor gather(const tensor::Exec& exec, const at::Tensor& values) const;

 private:
  std::shared_ptr<const model::ContextCut> cut_;
  std::vector<int64_t> rows_, own_;  // own_: which of the N this rank has
  std::vector<int64_t> places_;      // [N] places among all ranks' values, where each rank has room for most_
  int64_t most_ = 0;
};

}  // namespace collimate::train
