#include "collimate/graph/rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace collimate::graph {

int64_t RowSet::count() const {
  int64_t total = 0;
  for (const RowRange& range : ranges_) total += range.end - range.first;
  return total;
}

void RowSet::add(RowRange range) {
  if (range.first >= range.end) return;
  auto first = std::lower_bound(ranges_.begin(), ranges_.end(), range.first,
                                [](const RowRange& r, int64_t row) { return r.end < row; });
  auto last = first;
  for (; last != ranges_.end() && last->first <= range.end; ++last) {
    range.first = std::min(range.first, last->first);
    range.end = std::max(range.end, last->end);
  }
  ranges_.insert(ranges_.erase(first, last), range);
}

void RowSet::merge(const RowSet& other) {
  for (const RowRange& range : other.ranges_) add(range);
}

void RowSet::subtract(const RowSet& other) {
  if (other.empty() || empty()) return;
  std::vector<RowRange> left;
  auto cut = other.ranges_.begin();
  for (RowRange range : ranges_) {
    while (cut != other.ranges_.end() && cut->end <= range.first) ++cut;
    for (auto c = cut; c != other.ranges_.end() && c->first < range.end; ++c) {
      if (c->first > range.first) left.push_back({range.first, c->first});
      range.first = std::max(range.first, c->end);
    }
    if (range.first < range.end) left.push_back(range);
  }
  ranges_ = std::move(left);
}

RowSet RowSet::intersect(const RowSet& other) const {
  RowSet both;
  auto a = ranges_.begin(), b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    const RowRange common{std::max(a->first, b->first), std::min(a->end, b->end)};
    if (common.first < common.end) both.ranges_.push_back(common);
    if (a->end < b->end) {
      ++a;
    } else {
      ++b;
    }
  }
  return both;
}

RowSet RowSet::clip(RowRange window) const {
  RowSet inside;
  auto at = std::upper_bound(ranges_.begin(), ranges_.end(), window.first,
                             [](int64_t row, const RowRange& r) { return row < r.end; });
  for (; at != ranges_.end() && at->first < window.end; ++at)
    inside.ranges_.push_back({std::max(at->first, window.first), std::min(at->end, window.end)});
  return inside;
}

bool RowSet::contains(RowRange range) const {
  RowSet inside = clip(range);
  return range.first >= range.end || (inside.ranges_.size() == 1 && inside.ranges_[0] == range);
}

bool RowSet::contains(const RowSet& other) const {
  return std::all_of(other.ranges_.begin(), other.ranges_.end(),
                     [&](const RowRange& range) { return contains(range); });
}

RowSet RowSet::whole_groups(int64_t size) const {
  RowSet whole;
  for (const RowRange& range : ranges_) whole.add({(range.first + size - 1) / size * size, range.end / size * size});
  return whole;
}

void to_json(nlohmann::json& out, const RowSet& rows) {
  out = nlohmann::json::array();
  for (const RowRange& range : rows.ranges()) out.push_back({range.first, range.end});
}

void from_json(const nlohmann::json& in, RowSet& rows) {
  rows = {};
  for (const nlohmann::json& range : in) rows.add({range.at(0).get<int64_t>(), range.at(1).get<int64_t>()});
}

}  // namespace collimate::graph
