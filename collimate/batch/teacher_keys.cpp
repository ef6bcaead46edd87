#include "collimate/batch/teacher_keys.h"

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::batch {

template <class T>
std::vector<T> of_trained_tokens(const Batch& rows, const Key<T>& key) {
  std::vector<T> all;
  const std::vector<int64_t>& inner = rows.column(key.name).schema.inner;
  const int64_t width = inner.empty() ? 1 : inner.front();
  for (int64_t r = 0; r < rows.rows(); ++r) {
    int64_t tokens = 0;
    for (const uint8_t trainable : rows.row(kTrainable, r)) tokens += trainable != 0 ? 1 : 0;
    const auto values = rows.row(key, r);
    if (std::ssize(values) != tokens * width)
      throw base::InputError(
          base::expectation(fmt::format("column {}", key.name),
                            fmt::format("{} numbers in row {}, which trains {} tokens", tokens * width, r, tokens),
                            fmt::to_string(values.size())));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

template std::vector<float> of_trained_tokens(const Batch& rows, const Key<float>& key);
template std::vector<int32_t> of_trained_tokens(const Batch& rows, const Key<int32_t>& key);

}  // namespace collimate::batch
