#pragma once

#include <cstdint>
#include <string>

#include "collimate/comm/group.h"
#include "collimate/comm/mesh.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/ops/linear.h"

namespace collimate::model {

// Layers cut over one axis of a mesh (Shoeybi et al. 2019). Every rank of the axis calls the same methods in the same
// order; weights are this rank's piece, row-major; blocking. Legend: T rows, I inputs, O outputs, R ranks, V
// vocabulary.
struct ParallelAxis {
  // `group` holds the ranks of the mesh's line through this rank. Throws std::logic_error when they do not match.
  ParallelAxis(const comm::Mesh& mesh, const std::string& axis, int rank, comm::Group& group);
  comm::Group& group;
  int rank, size;
  double deadline_seconds = 600.0;  // of every wait for the other ranks
};

// Cut by outputs: the piece is [O / R, I]. The input is whole on every rank, the output is this rank's columns.
class ColumnParallelLinear {
 public:
  // InputError when O is no multiple of R.
  ColumnParallelLinear(ParallelAxis axis, int64_t inputs, int64_t outputs);
  // bias [O / R] or null.
  void set_weight(const tensor::Exec& exec, const float* weight, const float* bias);
  void forward(const tensor::Exec& exec, const float* x, int64_t rows, float* y) const;  // [T, I] -> [T, O / R]
  // dy [T, O / R]; dx [T, I] is the sum over ranks, on every rank; dw and db (or null) are added to.
  void backward(const tensor::Exec& exec, const float* dy, const float* x, int64_t rows, float* dx, float* dw,
                float* db) const;

 private:
  ParallelAxis axis_;
  int64_t inputs_, outputs_;  // outputs of this rank
  const float* weight_ = nullptr;
  const float* bias_ = nullptr;
  tensor::LinearPanels panels_;
};

// Cut by inputs: the piece is [O, I / R]. The input is this rank's columns, the output is whole on every rank. With
// `reduction_chunks` of which R is a divisor (and I a multiple), the bits are those of one rank with so many chunks.
class RowParallelLinear {
 public:
  // InputError when I or reduction_chunks is no multiple of R.
  RowParallelLinear(ParallelAxis axis, int64_t inputs, int64_t outputs, int reduction_chunks);
  // bias [O] or null, added once.
  void set_weight(const tensor::Exec& exec, const float* weight, const float* bias);
  void forward(const tensor::Exec& exec, const float* x, int64_t rows, float* y) const;  // [T, I / R] -> [T, O]
  // dy [T, O] whole; dx [T, I / R]; dw and db (or null; equal on all ranks) are added to.
  void backward(const tensor::Exec& exec, const float* dy, const float* x, int64_t rows, float* dx, float* dw,
                float* db) const;

 private:
  ParallelAxis axis_;
  int64_t inputs_, outputs_;  // inputs of this rank
  int chunks_;                // of this rank
  const float* weight_ = nullptr;
  const float* bias_ = nullptr;
  tensor::LinearPanels panels_;
};

// Cut by rows of the table: the piece is [V / R, H]. The output is whole on every rank.
class ParallelEmbedding {
 public:
  // InputError when V is no multiple of R.
  ParallelEmbedding(ParallelAxis axis, int64_t vocabulary, int64_t width);
  // out [T, H]. InputError for an id outside [0, V).
  void forward(const tensor::Exec& exec, const float* table, const int32_t* ids, int64_t rows, float* out) const;
  // dtable of this rank's rows is added to.
  void backward(const float* dout, const int32_t* ids, int64_t rows, float* dtable) const;

 private:
  ParallelAxis axis_;
  int64_t entries_, width_;  // entries of this rank
};

}  // namespace collimate::model
