#include "collimate/model/mapped_values.h"

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/host/mapped_file.h"
#include "collimate/model/file_order.h"
#include "collimate/tensor/host_access.h"
#include "collimate/tensor/ops/activation.h"
#include "collimate/tensor/ops/embedding.h"

namespace collimate::model {
namespace {

constexpr int64_t kAligned = 16;               // floats of 64 bytes
constexpr int64_t kPanelRows = 32;             // of LinearPanels
constexpr int64_t kRowsRead = 2 * kPanelRows;  // of a matrix at a time

// Packs rows [begin, end) of a parameter, as read(row, out) gives them. The panels have its row 0 at `panel_row`.
template <class Read>
void pack_pieces(const tensor::Exec& exec, int64_t begin, int64_t end, int64_t panel_row, tensor::LinearPanels& panels,
                 const Read& read) {
  std::vector<float> values(static_cast<size_t>(std::min(kRowsRead, end - begin) * panels.k));
  for (int64_t row = begin; row < end; row += kRowsRead) {
    const int64_t count = std::min(kRowsRead, end - row);
    const std::span<float> part = std::span(values).first(static_cast<size_t>(count * panels.k));
    read(row, part);
    const tensor::OnDevice<float> on_device(exec, part);
    tensor::pack_linear_rows({nullptr, exec.device}, on_device.data(), panel_row + row, count, panels);
  }
}

}  // namespace

MappedValues::MappedValues(std::string directory, std::unique_ptr<const TensorDirectory> files,
                           std::vector<const TensorEntry*> entries, std::vector<shape::ParamSpec> specs,
                           std::unique_ptr<const PeftAdapters> adapters)
    : directory_(std::move(directory)),
      files_(std::move(files)),
      adapters_(std::move(adapters)),
      entries_(std::move(entries)),
      specs_(std::move(specs)) {
  COLLIMATE_CHECK(entries_.size() == specs_.size(), "{} entries", entries_.size());
}

PeftAdapters::Sum MappedValues::sum_of(size_t index) const {
  return adapters_ == nullptr ? PeftAdapters::Sum() : adapters_->sum_of(specs_.at(index));
}

void MappedValues::read(size_t index, int64_t first, std::span<float> out) const {
  read_own(index, first, out);
  sum_of(index).add(first, out);
}

void MappedValues::read_own(size_t index, int64_t first, std::span<float> out) const {
  read_rows(index, first, out);
  check_finite(*entries_[index], directory_, out);
}

void MappedValues::read_rows(size_t index, int64_t first, std::span<float> out) const {
  const shape::ParamSpec& spec = specs_.at(index);
  const TensorEntry& entry = *entries_[index];
  const auto width = static_cast<size_t>(spec.sizes.back()), rows = out.size() / width;
  const auto begin = static_cast<size_t>(first);
  COLLIMATE_CHECK(
      first >= 0 && rows * width == out.size() && (begin + rows) * width <= static_cast<size_t>(spec.count()),
      "rows {} to {} of {}", first, begin + rows, spec.name);
  if (spec.reordered() && spec.sizes.size() == 1) return read_param(spec, entry, directory_, out);
  const bool transposed = is_transposed(spec, entry);
  if (spec.reordered() && !transposed) {
    for (size_t r = 0; r < rows; ++r) {
      const auto row = static_cast<size_t>(spec.file_row(first + static_cast<int64_t>(r)));
      read_floats(part_of(entry, row * width, width), directory_, out.subspan(r * width, width));
    }
    return;
  }
  if (!transposed) return read_floats(part_of(entry, begin * width, out.size()), directory_, out);
  std::vector<size_t> places;  // by row, its column in the file
  for (size_t r = 0; r < rows; ++r) places.push_back(static_cast<size_t>(spec.file_row(first + std::ssize(places))));
  const auto [least, most] = std::ranges::minmax(places);
  const auto all_rows = static_cast<size_t>(spec.sizes[0]);
  std::vector<float> column(most - least + 1);
  for (size_t k = 0; k < width; ++k) {
    read_floats(part_of(entry, k * all_rows + least, column.size()), directory_, column);
    for (size_t r = 0; r < rows; ++r) out[r * width + k] = column[places[r] - least];
  }
}

void MappedValues::look_up(const tensor::Exec& exec, size_t index, std::span<const int32_t> ids, int64_t first,
                           float* out, bool accumulate) const {
  const int64_t width = specs_.at(index).sizes[1];
  tensor::check_embedding_ids(ids.data(), static_cast<int64_t>(ids.size()), specs_[index].sizes[0] - first);
  std::vector<float> found(ids.size() * static_cast<size_t>(width));
  for (size_t r = 0; r < ids.size(); ++r)
    read(index, first + ids[r], std::span(found).subspan(r * static_cast<size_t>(width), static_cast<size_t>(width)));
  base::fault_rows("embedding", found.data(), static_cast<int64_t>(ids.size()), width, width);
  const auto count = static_cast<int64_t>(found.size());
  if (!accumulate) return tensor::copy_in(exec, found.data(), count * static_cast<int64_t>(sizeof(float)), out);
  const tensor::OnDevice<float> rows(exec, found);
  tensor::add(exec, rows.data(), count, out);
}

void MappedValues::pack(const tensor::Exec& exec, size_t first, tensor::LinearPanels& panels) const {
  int64_t before = 0;  // rows of the fused parameters ahead of this one
  for (size_t i = first; i < first + static_cast<size_t>(specs_.at(first).fused); ++i) {
    const int64_t rows = specs_[i].sizes[0];
    // Ranges begin at whole panels, so that no two threads write to one.
    const int64_t rest = std::min(rows, (kPanelRows - before % kPanelRows) % kPanelRows);
    const PeftAdapters::Sum sum = sum_of(i);
    const auto pack_rows = [&](int64_t begin, int64_t end) {
      pack_pieces(exec, begin, end, before, panels, [&](int64_t row, std::span<float> out) {
        read_own(i, row, out);
        sum.add(row, out);
      });
    };
    pack_rows(0, rest);
    exec.parallel_for(rows - rest, kRowsRead, [&](int64_t begin, int64_t end) { pack_rows(rest + begin, rest + end); });
    host::forget_pages(entries_[i]->data);
    before += rows;
  }
}

void MappedValues::load_small(const tensor::Exec& exec, const shape::ModelShape& shape) {
  const auto stays = [&](size_t i) {
    return specs_[i].kind == shape::ParamKind::kEmbedding || shape::is_linear(shape, specs_[i]);
  };
  std::vector<int64_t> places;
  int64_t floats = 0;
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].fused > 0) floats = (floats + kAligned - 1) / kAligned * kAligned;
    places.push_back(floats);
    if (!stays(i)) floats += specs_[i].count();
  }
  small_memory_ = tensor::Buffer(floats * static_cast<int64_t>(sizeof(float)), *exec.device);
  small_.assign(specs_.size(), nullptr);
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (stays(i)) continue;
    small_[i] = small_memory_.floats() + places[i];
    read(i, 0, tensor::HostEdit(exec, small_[i], specs_[i].count()).span());
  }
}

}  // namespace collimate::model
