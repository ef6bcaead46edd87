#include "collimate/batch/token_rows.h"

#include <algorithm>
#include <utility>

#include "collimate/batch/standard_keys.h"

namespace collimate::batch {

void TokenRows::add(int64_t uid, std::vector<int32_t> ids, size_t first_trained) {
  std::vector<uint8_t> trainable(ids.size(), 1);
  std::fill_n(trainable.begin(), std::min(first_trained, ids.size()), 0);
  add(uid, std::move(ids), std::move(trainable));
}

void TokenRows::add(int64_t uid, std::vector<int32_t> ids, std::vector<uint8_t> trainable) {
  uids_.push_back(uid);
  ids_.push_back(std::move(ids));
  trainable_.push_back(std::move(trainable));
}

Batch TokenRows::batch() const {
  Batch rows;
  rows.set(kUid, uids_);
  rows.set_ragged(kIds, ids_);
  rows.set_ragged(kTrainable, trainable_);
  return rows;
}

}  // namespace collimate::batch
