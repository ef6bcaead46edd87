#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

namespace collimate::base {

// A Box is the rows [row, row + rows) of a tensor in columns [column, column + columns). A vector has one column.
struct Box {
  int64_t row = 0, rows = 0, column = 0, columns = 0;
  bool operator==(const Box&) const = default;
  int64_t count() const { return rows * columns; }
};

// Returns the intersection of two boxes; its count is 0 where they do not overlap.
Box common(const Box& a, const Box& b);
// Returns what is left of a box without `hole`, which lies inside it, as up to four boxes.
std::vector<Box> without(const Box& box, const Box& hole);

// A TensorPart is a box of a tensor, stored row by row from `offset` on in an array of floats. The name and sizes of
// the whole tensor are the same in every layout.
struct TensorPart {
  std::string name;
  int64_t rows = 0, columns = 0;  // of the whole
  Box box;
  int64_t offset = 0;
};

// A part is [name, rows, columns, [row, rows, column, columns], offset] in JSON.
inline void to_json(nlohmann::json& out, const TensorPart& part) {
  const Box& box = part.box;
  out = {part.name, part.rows, part.columns, {box.row, box.rows, box.column, box.columns}, part.offset};
}
inline void from_json(const nlohmann::json& in, TensorPart& part) {
  std::tuple<int64_t, int64_t, int64_t, int64_t> box;
  std::tie(part.name, part.rows, part.columns, box, part.offset) =
      in.get<std::tuple<std::string, int64_t, int64_t, decltype(box), int64_t>>();
  std::tie(part.box.row, part.box.rows, part.box.column, part.box.columns) = box;
}

}  // namespace collimate::base
