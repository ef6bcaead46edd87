#include "collimate/model/file_order.h"

#include <algorithm>
#include <bit>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::model {

std::vector<int64_t> file_sizes(const shape::ParamSpec& spec) {
  std::vector<int64_t> sizes = spec.sizes;
  if (spec.transposed_in_file) std::reverse(sizes.begin(), sizes.end());
  if (spec.file_rows > 0) sizes = {spec.file_rows, spec.count() / spec.file_rows};
  return sizes;
}

bool is_transposed(const shape::ParamSpec& spec, const TensorEntry& entry) {
  return spec.transposed_in_file && !entry.upright;
}

bool have_equal_values(const TensorEntry& a, const TensorEntry& b, const std::string& where) {
  if (a.data.data() == b.data.data()) return true;
  constexpr size_t kAtOnce = size_t{1} << 16;
  std::vector<float> of_a(kAtOnce), of_b(kAtOnce);
  const auto all = static_cast<size_t>(a.count());
  for (size_t first = 0; first < all; first += kAtOnce) {
    const size_t count = std::min(kAtOnce, all - first);
    read_floats(part_of(a, first, count), where, std::span(of_a).first(count));
    read_floats(part_of(b, first, count), where, std::span(of_b).first(count));
    if (!std::equal(of_a.begin(), of_a.begin() + static_cast<std::ptrdiff_t>(count), of_b.begin())) return false;
  }
  return true;
}

void read_param(const shape::ParamSpec& spec, const TensorEntry& entry, const std::string& where,
                std::span<float> out) {
  const auto read = is_transposed(spec, entry) ? read_floats_transposed : read_floats;
  if (!spec.reordered()) return read(entry, where, out);
  std::vector<float> in_file(out.size());
  read(entry, where, in_file);
  const auto width = static_cast<int64_t>(out.size()) / spec.sizes[0];
  for (int64_t row = 0; row < spec.sizes[0]; ++row)
    std::copy_n(in_file.begin() + spec.file_row(row) * width, width, out.begin() + row * width);
}

void check_finite(const TensorEntry& entry, const std::string& where, std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7F800000;
  const auto is_none = [](float value) { return (std::bit_cast<uint32_t>(value) & kExponent) == kExponent; };
  uint32_t any = 0;  // a loop without branches runs at the memory's speed
  for (const float value : values) any |= static_cast<uint32_t>(is_none(value));
  if (any == 0) return;
  throw base::InputError(base::expectation(
      where + " " + entry.name, "finite values",
      fmt::format("{} of {} that are NaN or infinite", std::ranges::count_if(values, is_none), values.size()),
      "downloading the model again, or the model of a checkpoint from before its run diverged"));
}

void to_file_order(const shape::ParamSpec& spec, std::span<const float> values, std::span<float> out) {
  const int64_t rows = spec.sizes[0], width = static_cast<int64_t>(values.size()) / rows;
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = values.data() + row * width;
    const int64_t in_file = spec.file_row(row);
    if (!spec.transposed_in_file) {
      std::copy_n(from, width, out.begin() + in_file * width);
    } else {
      for (int64_t k = 0; k < width; ++k) base::at(out, k * rows + in_file) = from[k];
    }
  }
}

}  // namespace collimate::model
