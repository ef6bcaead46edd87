#include "collimate/text/epoch_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collimate/base/error.h"
#include "collimate/base/philox.h"

namespace collimate::text {
namespace {

const uint32_t kShufflePurpose = static_cast<uint32_t>(base::stable_hash("data order"));

// Shuffles by Fisher-Yates. The remainder's bias is below rows / 2^64.
void shuffle_rows(std::vector<int64_t>& rows, uint64_t seed, uint64_t stream) {
  for (size_t i = rows.size(); i > 1; --i) {
    const uint64_t draw = base::random_bits(seed, kShufflePurpose, stream, static_cast<uint32_t>(i));
    std::swap(rows[i - 1], rows[draw % i]);
  }
}

// Appends rows [begin, begin + weight.rows) as often as the weight says; for its fraction each epoch chooses other
// rows.
void append_weighted(const OrderOptions& options, const RowWeight& weight, int64_t begin, int64_t epoch,
                     std::vector<int64_t>& order) {
  const auto count = static_cast<size_t>(weight.rows);
  const auto whole = static_cast<int64_t>(std::floor(weight.weight));
  order.reserve(order.size() + static_cast<size_t>(std::ceil(weight.weight)) * count);
  for (int64_t i = 0; i < whole; ++i)
    for (int64_t row = begin; row < begin + weight.rows; ++row) order.push_back(row);
  const auto part = std::llround((weight.weight - static_cast<double>(whole)) * static_cast<double>(weight.rows));
  if (part == 0) return;
  std::vector<int64_t> rows(count);
  std::iota(rows.begin(), rows.end(), begin);
  shuffle_rows(rows, options.seed, base::mix(static_cast<uint64_t>(epoch), static_cast<uint64_t>(begin) + 1));
  rows.resize(static_cast<size_t>(part));
  std::sort(rows.begin(), rows.end());
  order.insert(order.end(), rows.begin(), rows.end());
}

}  // namespace

std::vector<int64_t> epoch_order(const OrderOptions& options, int64_t epoch) {
  std::vector<int64_t> order;
  if (options.weights.empty()) {
    order.resize(static_cast<size_t>(options.rows));
    std::iota(order.begin(), order.end(), int64_t{0});
  }
  int64_t begin = 0;
  for (const RowWeight& weight : options.weights) {
    append_weighted(options, weight, begin, epoch, order);
    begin += weight.rows;
  }
  COLLIMATE_CHECK(options.weights.empty() || begin == options.rows, "{} weighted rows of {}", begin, options.rows);
  if (options.shuffle) shuffle_rows(order, options.seed, static_cast<uint64_t>(epoch));
  return order;
}

}  // namespace collimate::text
