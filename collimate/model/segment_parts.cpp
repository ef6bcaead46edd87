#include "collimate/model/segment_parts.h"

#include <algorithm>

namespace collimate::model {
namespace {

// Values [begin, end) of a parameter, row by row, as boxes: the rest of a row, whole rows, the beginning of a row.
void add_boxes(const shape::ParamSpec& spec, int64_t begin, int64_t end, int64_t offset,
               std::vector<base::TensorPart>& parts) {
  base::TensorPart part{.name = spec.name, .rows = spec.sizes[0], .columns = spec.count() / spec.sizes[0]};
  while (begin < end) {
    base::Box& box = part.box;
    box = {.row = begin / part.columns, .rows = 1, .column = begin % part.columns};
    box.columns = std::min(part.columns - box.column, end - begin);
    if (box.columns == part.columns) box.rows = (end - begin) / part.columns;
    part.offset = offset;
    parts.push_back(part);
    begin += box.count();
    offset += box.count();
  }
}

}  // namespace

std::vector<base::TensorPart> parts_of(std::span<const shape::ParamSpec> specs, int segment, const Share& share) {
  std::vector<base::TensorPart> parts;
  for (const shape::ParamSpec& spec : specs) {
    if (spec.segment != segment) continue;
    const int64_t begin = std::max(spec.offset, share.begin), end = std::min(spec.offset + spec.count(), share.end);
    add_boxes(spec, begin - spec.offset, end - spec.offset, begin - share.begin, parts);
  }
  return parts;
}

}  // namespace collimate::model
