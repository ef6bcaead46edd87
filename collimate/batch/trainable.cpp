#include "collimate/batch/trainable.h"

#include "collimate/batch/standard_keys.h"

namespace collimate::batch {
namespace {

void append_trainable(const Batch& rows, const Key<float>& key, int64_t row, std::vector<float>& out) {
  const auto values = rows.row(key, row);
  const auto trainable = rows.row(kTrainable, row);
  for (size_t t = 0; t < trainable.size(); ++t)
    if (trainable[t] != 0) out.push_back(values[t]);
}

}  // namespace

std::vector<float> at_trainable(const Batch& rows, const Key<float>& key, int64_t row) {
  std::vector<float> out;
  append_trainable(rows, key, row, out);
  return out;
}

std::vector<float> at_trainable(const Batch& rows, const Key<float>& key) {
  std::vector<float> out;
  for (int64_t r = 0; r < rows.rows(); ++r) append_trainable(rows, key, r, out);
  return out;
}

}  // namespace collimate::batch
