#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

namespace collimate::base {

// Rows [row, row + rows) of a tensor in columns [column, column + columns). A vector has one column.
struct Box {
  int64_t row = 0, rows = 0, column = 0, columns = 0;
  bool operator==(const Box&) const = default;
  int64_t count() const { return rows * columns; }
};

// Gives what both boxes have, of count 0 where that is nothing.
Box common(const Box& a, const Box& b);
// Gives what is left of a box without `hole`, a box inside it: up to four boxes.
std::vector<Box> without(const Box& box, const Box& hole);

// A box of a tensor, row by row from `offset` on in an array of floats. The name and sizes of the whole tensor are the
// same in every layout.
struct TensorPart {
  std::string name;
  int64_t rows = 0, columns = 0;  // of the whole
  Box box;
  int64_t offset = 0;
};

// [name, rows, columns, [row, rows, column, columns], offset]
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
