#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace collimate::graph {

// A RowRange is the rows [first, end).
struct RowRange {
  int64_t first = 0, end = 0;
  bool operator==(const RowRange&) const = default;
};

// A RowSet is a set of row numbers as sorted, disjoint, non-touching ranges. Every operation costs the number of ranges
// involved.
class RowSet {
 public:
  RowSet() = default;
  RowSet(int64_t first, int64_t end) { add({first, end}); }

  bool empty() const { return ranges_.empty(); }
  int64_t count() const;
  const std::vector<RowRange>& ranges() const { return ranges_; }

  void add(RowRange range);
  void merge(const RowSet& other);
  void subtract(const RowSet& other);
  RowSet intersect(const RowSet& other) const;
  RowSet clip(RowRange window) const;
  bool contains(RowRange range) const;
  bool contains(const RowSet& other) const;
  // Returns the rows of the whole groups of `size` rows that lie inside.
  RowSet whole_groups(int64_t size) const;
  bool operator==(const RowSet&) const = default;

 private:
  std::vector<RowRange> ranges_;
};

// In JSON a row set is a list of [first, end].
void to_json(nlohmann::json& out, const RowSet& rows);
void from_json(const nlohmann::json& in, RowSet& rows);

}  // namespace collimate::graph
