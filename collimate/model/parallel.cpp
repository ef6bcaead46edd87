#include "collimate/model/parallel.h"

#include <cstring>

#include "collimate/base/error.h"
#include "collimate/tensor/ops/activation.h"

namespace collimate::model {
namespace {

// Gives one rank's part of `total`.
int64_t piece(const char* what, int64_t total, int ranks) {
  if (total % ranks != 0)
    throw base::InputError(base::expectation(std::string("tensor parallel ") + what,
                                             fmt::format("a multiple of {} ranks", ranks), std::to_string(total)));
  return total / ranks;
}

// Values become their sum over the axis' ranks, for what `exec` is given after.
void sum_over(const tensor::Exec& exec, const ParallelAxis& axis, float* values, int64_t count) {
  axis.group.all_reduce({values, static_cast<size_t>(count)}).then(exec, axis.deadline_seconds);
}

// dx [rows, inputs], dw [outputs, inputs] and db [outputs] of y = x wᵀ + b; the latter two are added to.
void linear_backward(const tensor::Exec& exec, const float* weight, int64_t inputs, int64_t outputs, const float* dy,
                     const float* x, int64_t rows, float* dx, float* dw, float* db) {
  constexpr auto kType = tensor::ComputeType::kFloat32;
  tensor::linear_grad_weight(exec, kType, dy, outputs, x, inputs, rows, outputs, inputs, dw, db);
  tensor::linear_grad_input(exec, kType, dy, outputs, rows, weight, outputs, inputs, dx, inputs);
}

}  // namespace

ParallelAxis::ParallelAxis(const comm::Mesh& mesh, const std::string& axis, int rank_in_mesh, comm::Group& members)
    : group(members), rank(mesh.coordinate(rank_in_mesh, axis)), size(mesh.size(axis)) {
  COLLIMATE_CHECK(group.rank() == rank && group.size() == size, "a group of another axis than {}", axis);
}

ColumnParallelLinear::ColumnParallelLinear(ParallelAxis axis, int64_t inputs, int64_t outputs)
    : axis_(axis), inputs_(inputs), outputs_(piece("outputs", outputs, axis.size)) {}

void ColumnParallelLinear::set_weight(const tensor::Exec& exec, const float* weight, const float* bias) {
  weight_ = weight;
  bias_ = bias;
  tensor::pack_linear(exec, weight, outputs_, inputs_, tensor::ComputeType::kFloat32, 1, panels_);
}

void ColumnParallelLinear::forward(const tensor::Exec& exec, const float* x, int64_t rows, float* y) const {
  tensor::linear(exec, x, inputs_, rows, panels_, y, outputs_, {bias_, /*accumulate=*/false});
}

void ColumnParallelLinear::backward(const tensor::Exec& exec, const float* dy, const float* x, int64_t rows, float* dx,
                                    float* dw, float* db) const {
  linear_backward(exec, weight_, inputs_, outputs_, dy, x, rows, dx, dw, db);
  sum_over(exec, axis_, dx, rows * inputs_);
}

RowParallelLinear::RowParallelLinear(ParallelAxis axis, int64_t inputs, int64_t outputs, int reduction_chunks)
    : axis_(axis),
      inputs_(piece("inputs", inputs, axis.size)),
      outputs_(outputs),
      chunks_(static_cast<int>(piece("reduction_chunks", reduction_chunks, axis.size))) {}

void RowParallelLinear::set_weight(const tensor::Exec& exec, const float* weight, const float* bias) {
  weight_ = weight;
  bias_ = bias;
  tensor::pack_linear(exec, weight, outputs_, inputs_, tensor::ComputeType::kFloat32, chunks_, panels_);
}

void RowParallelLinear::forward(const tensor::Exec& exec, const float* x, int64_t rows, float* y) const {
  tensor::linear(exec, x, inputs_, rows, panels_, y, outputs_);
  sum_over(exec, axis_, y, rows * outputs_);
  if (bias_ != nullptr) tensor::add_bias(exec, bias_, rows, outputs_, y, outputs_);
}

void RowParallelLinear::backward(const tensor::Exec& exec, const float* dy, const float* x, int64_t rows, float* dx,
                                 float* dw, float* db) const {
  linear_backward(exec, weight_, inputs_, outputs_, dy, x, rows, dx, dw, db);
}

ParallelEmbedding::ParallelEmbedding(ParallelAxis axis, int64_t vocabulary, int64_t width)
    : axis_(axis), entries_(piece("vocabulary", vocabulary, axis.size)), width_(width) {}

void ParallelEmbedding::forward(const tensor::Exec& exec, const float* table, const int32_t* ids, int64_t rows,
                                float* out) const {
  const int64_t first = axis_.rank * entries_;
  std::memset(out, 0, static_cast<size_t>(rows * width_) * sizeof(float));
  for (int64_t row = 0; row < rows; ++row) {
    if (ids[row] < 0 || ids[row] >= entries_ * axis_.size)
      throw base::InputError(
          base::expectation("token id", fmt::format("one below {}", entries_ * axis_.size), std::to_string(ids[row])));
    const int64_t own = ids[row] - first;
    if (own >= 0 && own < entries_)
      std::memcpy(out + row * width_, table + own * width_, static_cast<size_t>(width_) * sizeof(float));
  }
  sum_over(exec, axis_, out, rows * width_);
}

void ParallelEmbedding::backward(const float* dout, const int32_t* ids, int64_t rows, float* dtable) const {
  const int64_t first = axis_.rank * entries_;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t own = ids[row] - first;
    if (own < 0 || own >= entries_) continue;
    for (int64_t i = 0; i < width_; ++i) dtable[own * width_ + i] += dout[row * width_ + i];
  }
}

}  // namespace collimate::model
