#include "collimate/cli/weight_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "collimate/base/at.h"

namespace collimate::cli {
namespace {

constexpr int64_t kReadFloats = int64_t{1} << 20;  // at once

// visit(index of the first, values) of an entry, piece by piece.
template <class Visit>
void for_each_piece(const model::TensorEntry& entry, const std::string& where, const Visit& visit) {
  std::vector<float> values;
  for (int64_t first = 0; first < entry.count(); first += kReadFloats) {
    values.resize(static_cast<size_t>(std::min(kReadFloats, entry.count() - first)));
    model::read_floats(model::part_of(entry, static_cast<size_t>(first), values.size()), where, values);
    visit(first, values);
  }
}

double distance(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::infinity();
  return a == b ? 0 : std::abs(static_cast<double>(a) - static_cast<double>(b));
}

// Equal bits are equal, also of NaN; so are 0 and -0.
bool is_same(float a, float b) { return a == b || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

void compare(const model::TensorEntry& a, const model::TensorEntry& b, TensorDifference& found) {
  std::vector<float> other;
  for_each_piece(a, found.name, [&](int64_t first, const std::vector<float>& values) {
    other.resize(values.size());
    model::read_floats(model::part_of(b, static_cast<size_t>(first), values.size()), found.name, other);
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

std::vector<TensorDifference> weight_differences(const std::string& a, const std::string& b) {
  const model::TensorDirectory of_a(a), of_b(b);
  std::set<std::string> names;
  for (const auto* tensors : {&of_a, &of_b})
    for (const auto& [name, entry] : tensors->entries()) names.insert(name);
  std::vector<TensorDifference> all;
  for (const std::string& name : names) {
    const model::TensorEntry *in_a = of_a.find(name), *in_b = of_b.find(name);
    TensorDifference& found = all.emplace_back();
    found.name = name;
    found.sizes = (in_a != nullptr ? in_a : in_b)->sizes;
    if (in_a == nullptr) {
      found.missing_in = a;
    } else if (in_b == nullptr || in_b->sizes != in_a->sizes) {
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
  if (!values.empty()) model::read_floats(model::part_of(entry, 0, values.size()), where, values);
  return values;
}

}  // namespace collimate::cli
