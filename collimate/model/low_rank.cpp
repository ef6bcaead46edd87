#include "collimate/model/low_rank.h"

#include "collimate/base/error.h"

namespace collimate::model {

MatrixInTensor MatrixInTensor::all_of(const TensorEntry& entry) {
  const size_t columns = entry.sizes.size() == 2 ? static_cast<size_t>(entry.sizes[1]) : 0;
  return {&entry, entry.sizes, 0, columns, 1};
}

void MatrixInTensor::read_row(size_t row, const std::string& where, std::span<float> out) const {
  const size_t begin = first + row * row_step;
  if (column_step == 1) return read_floats(part_of(*entry, begin, out.size()), where, out);
  COLLIMATE_CHECK(entry->scales.numbers == nullptr, "numbers of {} have scales of their own", entry->name);
  TensorEntry one = part_of(*entry, begin, 1);
  const size_t bytes = one.data.size();
  for (size_t column = 0; column < out.size(); ++column) {
    one.data = {entry->data.data() + (begin + column * column_step) * bytes, bytes};
    read_floats(one, where, out.subspan(column, 1));
  }
}

bool fits(const FusedParameter& parameter, FusedOrder order, const TensorEntry& a, const TensorEntry& b) {
  const bool rows_are_out = order == FusedOrder::kRowsAreOut;
  const int64_t in = rows_are_out ? parameter.columns : parameter.rows;
  const int64_t out = rows_are_out ? parameter.rows : parameter.columns;
  return a.sizes.size() == 2 && b.sizes.size() == 2 && a.sizes[1] == in && b.sizes[0] == out &&
         a.sizes[0] == b.sizes[1] && a.sizes[0] % parameter.experts == 0;
}

LowRank of_expert(const FusedParameter& parameter, FusedOrder order, const LowRank& fused, int64_t expert,
                  size_t matrix) {
  const auto experts = static_cast<size_t>(parameter.experts), e = static_cast<size_t>(expert);
  const auto in = static_cast<size_t>(fused.a.sizes[1]), all = static_cast<size_t>(fused.a.sizes[0]);
  const size_t rank = all / experts, rows = static_cast<size_t>(parameter.rows) / parameter.matrices.size();
  const auto r = static_cast<int64_t>(rank), height = static_cast<int64_t>(rows);
  // Entry (k, i) of this expert's A is at (e · rank + k) · in + i, (o, k) of its B at o · all + k · E + e.
  if (order == FusedOrder::kRowsAreOut)
    return {{fused.a.entry, {r, parameter.columns}, e * rank * in, in, 1},
            {fused.b.entry, {height, r}, matrix * rows * all + e, all, experts},
            fused.scale,
            r};
  return {{fused.b.entry, {r, parameter.columns}, e, experts, all},
          {fused.a.entry, {height, r}, e * rank * in + matrix * rows, 1, in},
          fused.scale,
          r};
}

}  // namespace collimate::model
