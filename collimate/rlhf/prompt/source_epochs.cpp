// This file has the order in which iterations take the examples of a RowSource.
#include <algorithm>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/rlhf/prompt/source.h"

namespace collimate::rlhf {
namespace {

// Returns the order with the k-th use, from 0, of row r as r + k·rows, so that repeated uses have different uids.
std::vector<int64_t> numbered_uses(std::vector<int64_t> order, const text::OrderOptions& options) {
  const int64_t rows = options.rows;
  if (std::ranges::all_of(options.weights, [](const text::RowWeight& source) { return source.weight <= 1; }))
    return order;
  std::vector<int64_t> uses(static_cast<size_t>(rows));
  for (int64_t& row : order) row += rows * base::at(uses, row)++;
  return order;
}

constexpr uint32_t kReplacementPurpose = 0x5e91;

}  // namespace

int64_t RowSource::epoch_iterations(int64_t rows) const {
  const int64_t examples = rows / rows_per_example();
  if (options_.last_batch == LastBatch::kCycle) return 0;
  return (epoch_examples_ + (options_.last_batch == LastBatch::kRetain ? examples - 1 : 0)) / examples;
}

int64_t RowSource::rows_of(int64_t iteration, int64_t rows) const {
  const int64_t left = epoch_examples_ * rows_per_example() % rows;
  const bool less = options_.last_batch == LastBatch::kRetain && left > 0;
  return less && (iteration + 1) % epoch_iterations(rows) == 0 ? left : rows;
}

void RowSource::require_iteration(int64_t rows) const {
  const int64_t examples = rows / rows_per_example();
  if (options_.last_batch != LastBatch::kDrop || epoch_examples_ >= examples) return;
  throw base::InputError(base::expectation(
      "data.last_batch",
      fmt::format("cycle or retain, or an epoch of at least the {} examples of an iteration", examples),
      fmt::format("drop, which leaves out all {} of an epoch", epoch_examples_), "fewer rows in an iteration"));
}

RowSource::Pick RowSource::pick(int64_t iteration, int64_t examples, int64_t index) const {
  const int64_t rows = examples * rows_per_example();
  if (index >= rows_of(iteration, rows) / rows_per_example()) {
    const uint64_t bits = base::random_bits(options_.seed, kReplacementPurpose, static_cast<uint64_t>(iteration),
                                            static_cast<uint32_t>(index));
    return {.use = static_cast<int64_t>(bits % static_cast<uint64_t>(this->examples())),
            .epoch = iteration,
            .attempt = index + 1};
  }
  const int64_t of_epoch = epoch_iterations(rows);
  if (of_epoch == 0) return pick_of_sequence(iteration * examples + index);
  return pick_of_sequence(iteration / of_epoch * epoch_examples_ + iteration % of_epoch * examples + index);
}

RowSource::Pick RowSource::pick_of_sequence(int64_t number) const {
  const int64_t epoch = number / epoch_examples_;
  if (epoch != cached_epoch_) {
    cached_order_ = numbered_uses(text::epoch_order(order_, epoch), order_);
    cached_epoch_ = epoch;
  }
  const auto place = static_cast<size_t>(number % epoch_examples_);
  return {.use = cached_order_[std::min(place, cached_order_.size() - 1)], .epoch = epoch};
}

std::vector<int64_t> RowSource::order(int64_t first, int64_t count) const {
  std::vector<int64_t> numbers;
  for (int64_t i = first; i < first + count; ++i) numbers.push_back(example_of(pick_of_sequence(i)));
  return numbers;
}

}  // namespace collimate::rlhf
