#include "collimate/text/data_cursor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collimate/base/error.h"
#include "collimate/base/philox.h"

namespace collimate::text {
namespace {

const uint32_t kShufflePurpose = static_cast<uint32_t>(base::stable_hash("data order"));

// Fisher-Yates. The remainder's bias is below rows / 2^64.
void shuffle_rows(std::vector<int64_t>& rows, uint64_t seed, uint64_t stream) {
  for (size_t i = rows.size(); i > 1; --i) {
    const uint64_t draw = base::random_bits(seed, kShufflePurpose, stream, static_cast<uint32_t>(i));
    std::swap(rows[i - 1], rows[draw % i]);
  }
}

// Rows [begin, begin + weight.rows) as often as the weight says; of the fraction another choice each epoch.
void append_weighted(const CursorOptions& options, const RowWeight& weight, int64_t begin, int64_t epoch,
                     std::vector<int64_t>& order) {
  std::vector<int64_t> rows(static_cast<size_t>(weight.rows));
  std::iota(rows.begin(), rows.end(), begin);
  const auto whole = static_cast<int64_t>(std::floor(weight.weight));
  for (int64_t i = 0; i < whole; ++i) order.insert(order.end(), rows.begin(), rows.end());
  const auto part = std::llround((weight.weight - static_cast<double>(whole)) * static_cast<double>(weight.rows));
  if (part == 0) return;
  shuffle_rows(rows, options.seed, base::mix(static_cast<uint64_t>(epoch), static_cast<uint64_t>(begin) + 1));
  rows.resize(static_cast<size_t>(part));
  std::sort(rows.begin(), rows.end());
  order.insert(order.end(), rows.begin(), rows.end());
}

void check_weights(const CursorOptions& options) {
  int64_t rows = 0;
  for (const RowWeight& weight : options.weights) {
    if (!(weight.weight >= 0) || weight.weight > 1e6) {
      throw base::InputError(base::expectation("data weight", "a number from 0", fmt::to_string(weight.weight)));
    }
    rows += weight.rows;
  }
  COLLIMATE_CHECK(options.weights.empty() || rows == options.rows, "{} weighted rows of {}", rows, options.rows);
}

nlohmann::json identity(const CursorOptions& options) {
  nlohmann::json weights = nlohmann::json::array();
  for (const RowWeight& weight : options.weights) weights.push_back({weight.rows, weight.weight});
  return {{"rows", options.rows}, {"seed", options.seed}, {"shuffle", options.shuffle}, {"weights", weights}};
}

}  // namespace

std::vector<int64_t> epoch_order(const CursorOptions& options, int64_t epoch) {
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
  if (options.shuffle) shuffle_rows(order, options.seed, static_cast<uint64_t>(epoch));
  return order;
}

DataCursor::DataCursor(CursorOptions options) : options_(std::move(options)) {
  if (options_.rows <= 0) throw base::InputError(base::expectation("data", "at least one row", "an empty data set"));
  COLLIMATE_CHECK(options_.repeats > 0, "repeats {}", options_.repeats);
  check_weights(options_);
  order_ = epoch_order(options_, 0);
  if (order_.empty()) throw base::InputError(base::expectation("data weight", "some row to draw", "only zeros"));
}

std::vector<Draw> DataCursor::next(int64_t count) {
  COLLIMATE_CHECK(count > 0, "count {}", count);
  if (options_.last == LastRows::kDrop && count > static_cast<int64_t>(order_.size())) {
    throw base::InputError(base::expectation("data", fmt::format("at least the {} rows of one draw", count),
                                             fmt::format("{} rows", order_.size()),
                                             "smaller draws, or keeping the last rows of an epoch"));
  }
  std::vector<Draw> draws;
  draws.reserve(static_cast<size_t>(count * options_.repeats));
  int64_t drawn = 0;
  while (drawn < count) {
    const auto rows = static_cast<int64_t>(order_.size());
    const bool over = position_ == rows;
    const bool drop = options_.last == LastRows::kDrop && rows - position_ < count - drawn;
    if (over || drop) {
      if (drawn > 0 && options_.last == LastRows::kKeep) break;
      if (options_.epochs > 0 && epoch_ + 1 >= options_.epochs) break;
      begin_epoch(epoch_ + 1);
      continue;
    }
    for (int64_t repeat = 0; repeat < options_.repeats; ++repeat) draws.push_back({order_[position_], epoch_, repeat});
    ++position_;
    ++drawn;
  }
  return draws;
}

void DataCursor::begin_epoch(int64_t epoch) {
  epoch_ = epoch;
  position_ = 0;
  order_ = epoch_order(options_, epoch);
}

void DataCursor::save(base::StateWriter& out) const {
  out.json("data_cursor", {{"epoch", epoch_}, {"position", position_}, {"data", identity(options_)}});
}

void DataCursor::load(base::StateReader& in) {
  const nlohmann::json state = in.json("data_cursor");
  if (state.at("data") != identity(options_)) {
    throw base::InputError(base::expectation("data cursor", "the data of the checkpoint, " + state.at("data").dump(),
                                             identity(options_).dump(), "the same data, seed and weights"));
  }
  begin_epoch(state.at("epoch"));
  position_ = state.at("position");
}

}  // namespace collimate::text
