// This file makes the lengths and factors of the rows of layers with DoRA's adapters (LoraOptions::dora).
#include <algorithm>
#include <cmath>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/model/weights_impl.h"
#include "collimate/tensor/ops/activation.h"
#include "collimate/tensor/ops/memory.h"
#include "collimate/tensor/ops/norm.h"
#include "collimate/tensor/ops/optimizer.h"

namespace collimate::model {

using shape::ParamSpec;
using tensor::Buffer;

namespace {
constexpr auto kFactorBytes = static_cast<int64_t>(sizeof(float));
}  // namespace

int Weights::Impl::adapter_of(int weight, std::string_view end) const {
  const auto found = index.find(adapter_name(spec(weight), end));
  return found == index.end() ? -1 : found->second;
}

bool Weights::Impl::has_factors(size_t first) const {
  if (!options.lora.dora || first >= own || !has_panels(first)) return false;
  for (size_t i = first; i < first + static_cast<size_t>(specs[first].fused); ++i)
    if (adapter_of(static_cast<int>(i), kAdapterLengths) >= 0) return true;
  return false;
}

std::vector<float> Weights::Impl::row_lengths(int weight) const {
  const ParamSpec& of = spec(weight);
  const int64_t rows = of.sizes[0], width = of.sizes[1], rank = options.lora.rank_of(of);
  const float* own_values = values_at(weight);
  const float* down = values_at(adapter_of(weight, kAdapterA));  // [rank, in]
  const float* up = values_at(adapter_of(weight, kAdapterB));    // [out, rank]
  const auto tagged = scope("factors");
  Buffer sums(std::min(rows, kFactorRows) * width * kFactorBytes, *exec.device),
      inverses(rows * kFactorBytes, *exec.device);
  for (int64_t first = 0; first < rows; first += kFactorRows) {
    const int64_t some = std::min(kFactorRows, rows - first);
    tensor::linear_grad_input(exec, ComputeType::kFloat32, up + first * rank, rank, some, down, rank, width,
                              sums.floats(), width);
    tensor::scale(exec, options.lora.scale_of(of), some * width, sums.floats());
    tensor::add(exec, own_values + first * width, some * width, sums.floats());
    // The norm's own results are not used, but the lengths that it divides by: √in / inverse of each row.
    tensor::rms_norm(exec, sums.floats(), some, width, own_values, 0, sums.floats(), inverses.floats() + first);
  }
  std::vector<float> lengths(static_cast<size_t>(rows));
  tensor::copy_out(exec, inverses.data(), rows * kFactorBytes, lengths.data());
  const double root = std::sqrt(static_cast<double>(width));
  for (float& length : lengths) length = static_cast<float>(root / double{length});  // 0 of a row of zeros: √in / ∞
  return lengths;
}

void Weights::Impl::make_factors(int first, Packed& target) {
  const auto rows = static_cast<size_t>(shape::fused_rows(specs, first));
  std::vector<float> both(2 * rows, 1.0F);
  size_t row = 0;
  for (int i = first; i < first + spec(first).fused; ++i) {
    const auto own_rows = static_cast<size_t>(spec(i).sizes[0]);
    if (const int lengths = adapter_of(i, kAdapterLengths); lengths >= 0) {
      const std::vector<float> now = row_lengths(i);
      std::vector<float> wanted(own_rows);
      tensor::copy_out(exec, values_at(lengths), std::ssize(wanted) * kFactorBytes, wanted.data());
      for (size_t r = 0; r < own_rows; ++r) {
        both[row + r] = now[r] == 0 ? 1 : wanted[r] / now[r];
        both[rows + row + r] = now[r] == 0 ? 0 : 1 / now[r];
      }
    }
    row += own_rows;
  }
  const auto tagged = scope("factors");
  const int64_t bytes = std::ssize(both) * kFactorBytes;
  if (target.factors.bytes() < bytes) target.factors = Buffer(bytes, *exec.device);
  tensor::copy_in(exec, both.data(), bytes, target.factors.data());
  target.factors_version = version;
}

std::vector<float> Weights::row_lengths(int index) const {
  impl_->check_resident();
  return impl_->row_lengths(index);
}

RowFactors Weights::row_factors(int first) {
  impl_->check_resident();
  Impl::Packed& packed = base::at(impl_->packed, first);
  if (packed.factors_version != impl_->version) impl_->make_factors(first, packed);
  return {packed.factors.floats(), packed.factors.floats() + shape::fused_rows(impl_->specs, first)};
}

}  // namespace collimate::model
