#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collimate/batch/batch.h"

namespace collimate::batch {

// This class collects rows of tokens to train on, one by one.
class TokenRows {
 public:
  // Adds a row whose tokens from `first_trained` on are trained.
  void add(int64_t uid, std::vector<int32_t> ids, size_t first_trained);
  // Adds a row whose tokens are trained where `trainable`, which is as long as `ids`, has a 1.
  void add(int64_t uid, std::vector<int32_t> ids, std::vector<uint8_t> trainable);

  // Returns the rows as a batch with the columns uid, ids and trainable.
  Batch batch() const;

 private:
  std::vector<int64_t> uids_;
  std::vector<std::vector<int32_t>> ids_;
  std::vector<std::vector<uint8_t>> trainable_;
};

}  // namespace collimate::batch
