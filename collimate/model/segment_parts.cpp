#include "collimate/model/segment_parts.h"

#include <algorithm>
#include <utility>

namespace collimate::model {
namespace {

using base::Box;
using base::TensorPart;

// Adds the box of a rank's own parameter as boxes of the whole parameter. Where a piece has only some of the box's
// columns, its rows are not adjacent in the rank's floats, and each row becomes a box.
void add_box(const shape::ParamSpec& spec, const Box& own, int64_t offset, std::vector<TensorPart>& parts) {
  const int64_t rows = spec.sizes[0], columns = spec.count() / rows;
  const bool by_rows = spec.cut == 0, by_columns = spec.cut == 1;
  TensorPart part{.name = spec.name, .rows = by_rows ? spec.whole : rows, .columns = by_columns ? spec.whole : columns};
  std::vector<shape::Piece> pieces = spec.pieces;
  if (pieces.empty()) pieces = {{0, rows}};
  int64_t at = 0;
  for (const shape::Piece& piece : pieces) {
    const Box here = common(own, by_columns ? Box{0, rows, at, piece.count} : Box{at, piece.count, 0, columns});
    const int64_t moved = piece.first - std::exchange(at, at + piece.count);
    if (here.count() == 0) continue;
    const int64_t runs = here.columns == own.columns ? 1 : here.rows;
    for (int64_t run = 0; run < runs; ++run) {
      part.box = {here.row + run + (by_columns ? 0 : moved), here.rows / runs, here.column + (by_columns ? moved : 0),
                  here.columns};
      part.offset = offset + (here.row + run - own.row) * own.columns + here.column - own.column;
      parts.push_back(part);
    }
  }
}

// Adds values [begin, end) of a rank's own parameter: the rest of a row, whole rows, and the beginning of a row.
void add_range(const shape::ParamSpec& spec, int64_t begin, int64_t end, int64_t offset,
               std::vector<TensorPart>& parts) {
  if (begin >= end) return;
  const int64_t columns = spec.count() / spec.sizes[0];
  while (begin < end) {
    Box box{.row = begin / columns, .rows = 1, .column = begin % columns};
    box.columns = std::min(columns - box.column, end - begin);
    if (box.columns == columns) box.rows = (end - begin) / columns;
    add_box(spec, box, offset, parts);
    begin += box.count();
    offset += box.count();
  }
}

}  // namespace

std::vector<TensorPart> parts_of(std::span<const shape::ParamSpec> specs, int segment, const Share& share) {
  std::vector<TensorPart> parts;
  for (const shape::ParamSpec& spec : specs) {
    if (spec.segment != segment) continue;
    const int64_t begin = std::max(spec.offset, share.begin), end = std::min(spec.offset + spec.count(), share.end);
    add_range(spec, begin - spec.offset, end - spec.offset, begin - share.begin, parts);
  }
  return parts;
}

}  // namespace collimate::model
