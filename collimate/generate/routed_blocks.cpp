#include "collimate/generate/routed_blocks.h"

#include <algorithm>

#include "collimate/base/at.h"

namespace collimate::generate {
namespace {

int64_t bytes_of(int64_t width, int64_t blocks) {
  return blocks * kBlockTokens * width * static_cast<int64_t>(sizeof(model::RoutedExperts::value_type));
}

}  // namespace

int64_t routed_bytes(const shape::ModelShape& shape, int64_t blocks) {
  const int64_t width = model::routed_width(shape);
  return width == 0 ? 0 : tensor::allocated_bytes(bytes_of(width, blocks));
}

RoutedBlocks::RoutedBlocks(const shape::ModelShape& shape, int64_t blocks, bool asked) {
  if (!asked) return;
  width_ = model::routed_width(shape);
  bytes_ = bytes_of(width_, blocks);
  take();
}

void RoutedBlocks::take() {
  if (kept_.bytes() == bytes_) return;
  const tensor::MemoryScope tagged("routed_experts");
  kept_ = tensor::Buffer(bytes_);
}

void RoutedBlocks::put(const model::TokenBatch& tokens, std::span<const std::vector<int32_t>> tables,
                       const model::RoutedExperts& chosen) {
  auto next = chosen.begin();
  for (size_t s = 0; s < tables.size(); ++s)
    for (int32_t row = tokens.starts[s]; row < tokens.starts[s + 1]; ++row, next += width_) {
      const int32_t position = base::at(tokens.positions, row);
      std::copy_n(next, width_, at(base::at(tables[s], position / kBlockTokens), position % kBlockTokens));
    }
}

void RoutedBlocks::copy_block(int32_t from, int32_t to) {
  if (keeps()) std::copy_n(at(from, 0), kBlockTokens * width_, at(to, 0));
}

void RoutedBlocks::append_to(Sequence& sequence) const {
  if (!keeps()) return;
  for (auto t = static_cast<int64_t>(sequence.routed_experts.size()) / width_; t < sequence.computed; ++t) {
    const Expert* first = at(base::at(sequence.blocks, t / kBlockTokens).id(), t % kBlockTokens);
    sequence.routed_experts.insert(sequence.routed_experts.end(), first, first + width_);
  }
}

}  // namespace collimate::generate
