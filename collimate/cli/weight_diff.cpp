#include "collimate/cli/weight_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "collimate/base/at.h"
#include "collimate/base/log.h"
#include "collimate/model/quantized.h"

namespace collimate::cli {
namespace {

constexpr int64_t kReadFloats = int64_t{1} << 20;  // values that are read at once

// A ShownValues reads a tensor's values in the order of its shown sizes. It keeps the last matrix that it transposed.
class ShownValues {
 public:
  ShownValues(const model::TensorEntry& entry, const std::string& where) : entry_(entry), where_(where) {}

  // Reads the values [first, first + out.size()).
  void read(int64_t first, std::span<float> out) {
    const auto begin = static_cast<size_t>(first);
    if (!entry_.upright || entry_.sizes.size() < 2)
      return model::read_floats(model::part_of(entry_, begin, out.size()), where_, out);
    const auto rows = static_cast<size_t>(entry_.sizes.end()[-2]), columns = static_cast<size_t>(entry_.sizes.back());
    const size_t each = rows * columns;
    for (size_t done = 0; done < out.size();) {
      turn((begin + done) / each, rows, columns);
      const size_t from = (begin + done) % each, count = std::min(each - from, out.size() - done);
      std::ranges::copy(std::span(turned_).subspan(from, count), out.begin() + static_cast<std::ptrdiff_t>(done));
      done += count;
    }
  }

 private:
  void turn(size_t matrix, size_t rows, size_t columns) {
    if (matrix == matrix_) return;
    std::vector<float> upright(rows * columns);
    model::read_floats(model::part_of(entry_, matrix * rows * columns, upright.size()), where_, upright);
    turned_.resize(upright.size());
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) turned_[c * rows + r] = upright[r * columns + c];
    matrix_ = matrix;
  }

  const model::TensorEntry& entry_;
  const std::string& where_;
  size_t matrix_ = SIZE_MAX;
  std::vector<float> turned_;
};

// Calls visit(index of the first value, values) for an entry, piece by piece.
template <class Visit>
void for_each_piece(const model::TensorEntry& entry, const std::string& where, const Visit& visit) {
  ShownValues shown(entry, where);
  std::vector<float> values;
  for (int64_t first = 0; first < entry.count(); first += kReadFloats) {
    values.resize(static_cast<size_t>(std::min(kReadFloats, entry.count() - first)));
    shown.read(first, values);
    visit(first, values);
  }
}

double distance(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::infinity();
  return a == b ? 0 : std::abs(static_cast<double>(a) - static_cast<double>(b));
}

// Returns whether two values are equal. Values of equal bits are, even NaN, and so are 0 and -0.
bool is_same(float a, float b) { return a == b || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

void compare(const model::TensorEntry& a, const model::TensorEntry& b, TensorDifference& found) {
  ShownValues others(b, found.name);
  std::vector<float> other;
  for_each_piece(a, found.name, [&](int64_t first, const std::vector<float>& values) {
    other.resize(values.size());
    others.read(first, other);
    for (size_t i = 0; i < values.size(); ++i) {
      if (is_same(values[i], other[i])) continue;
      found.largest = std::max(found.largest, distance(values[i], other[i]));
      if (found.differing++ > 0) continue;
      found.first = first + static_cast<int64_t>(i);
      found.first_a = values[i];
      found.first_b = other[i];
    }
  });
}

}  // namespace

std::unique_ptr<model::TensorDirectory> shown_tensors(const std::string& directory) {
  constexpr const char* kFp8 = "F8_E4M3";
  auto tensors = std::make_unique<model::TensorDirectory>(directory);
  const auto count = [&](const char* dtype) {
    return std::ranges::count_if(tensors->entries(), [&](const auto& of) { return of.second->dtype == dtype; });
  };
  model::join_mxfp4(*tensors, directory);
  if (count(kFp8) > 0) model::attach_scales(*tensors, directory);
  for (const char* dtype : {model::kMxfp4, kFp8})
    if (const auto quantized = count(dtype); quantized > 0)
      base::log_info("{}: {} tensors have {} values with scales; what is shown is the products, in fp32", directory,
                     quantized, dtype);
  return tensors;
}

std::vector<int64_t> shown_sizes(const model::TensorEntry& entry) {
  std::vector<int64_t> sizes = entry.sizes;
  if (entry.upright && sizes.size() >= 2) std::swap(sizes.end()[-1], sizes.end()[-2]);
  return sizes;
}

std::vector<TensorDifference> weight_differences(const std::string& a, const std::string& b) {
  const auto of_a = shown_tensors(a), of_b = shown_tensors(b);
  std::set<std::string> names;
  for (const auto* tensors : {of_a.get(), of_b.get()})
    for (const auto& [name, entry] : tensors->entries()) names.insert(name);
  std::vector<TensorDifference> all;
  for (const std::string& name : names) {
    const model::TensorEntry *in_a = of_a->find(name), *in_b = of_b->find(name);
    TensorDifference& found = all.emplace_back();
    found.name = name;
    found.sizes = shown_sizes(in_a != nullptr ? *in_a : *in_b);
    if (in_a == nullptr) {
      found.missing_in = a;
    } else if (in_b == nullptr || shown_sizes(*in_b) != found.sizes) {
      found.missing_in = b;
    } else {
      compare(*in_a, *in_b, found);
    }
  }
  return all;
}

std::string place_of(int64_t index, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> place(sizes.size());
  for (size_t dim = sizes.size(); dim-- > 0; index /= sizes[dim]) place[dim] = index % sizes[dim];
  return fmt::format("[{}]", fmt::join(place, ", "));
}

TensorSummary summary_of(const model::TensorEntry& entry, const std::string& where) {
  TensorSummary found{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 0, 0, 0};
  double sum = 0, squares = 0;
  int64_t counted = 0;
  for_each_piece(entry, where, [&](int64_t, const std::vector<float>& values) {
    for (const float value : values) {
      if (!std::isfinite(value)) {
        ++found.not_finite;
        continue;
      }
      const auto x = static_cast<double>(value);
      found.least = std::min(found.least, x);
      found.most = std::max(found.most, x);
      sum += x;
      squares += x * x;
      ++counted;
    }
  });
  if (counted == 0) return {0, 0, 0, 0, found.not_finite};
  found.mean = sum / static_cast<double>(counted);
  found.norm = std::sqrt(squares);
  return found;
}

std::vector<float> first_values(const model::TensorEntry& entry, const std::string& where, int64_t count) {
  std::vector<float> values(static_cast<size_t>(std::min(count, entry.count())));
  if (!values.empty()) ShownValues(entry, where).read(0, values);
  return values;
}

}  // namespace collimate::cli
