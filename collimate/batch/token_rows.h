#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collimate/batch/batch.h"

namespace collimate::batch {

// Rows of tokens to train on, gathered one by one.
class TokenRows {
 public:
  // Adds a row whose tokens from `first_trained` on are trained.
  void add(int64_t uid, std::vector<int32_t> ids, size_t first_trained);
  // Adds one of which those are trained that `trainable`, as long as `ids`, has a 1 for.
  void add(int64_t uid, std::vector<int32_t> ids, std::vector<uint8_t> trainable);

  // Has the columns uid, ids and trainable.
  Batch batch() const;

 private:
  std::vector<int64_t> uids_;
  std::vector<std::vector<int32_t>> ids_;
  std::vector<std::vector<uint8_t>> trainable_;
};

}  // namespace collimate::batch
