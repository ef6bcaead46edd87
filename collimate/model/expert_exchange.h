#pragma once

#include <cstdint>
#include <vector>

#include "collimate/model/expert_ranks.h"
#include "collimate/shape/block.h"
#include "collimate/tensor/arena.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/host_access.h"

namespace collimate::model {

// Moves one layer's rows to the ranks that have their experts, and back. Each rank has a row for each of its tokens and
// each expert that the token chose, sorted by expert. All ranks make an exchange together and call the same functions
// in the same order; calls block. Rows are moved and never changed, and each row of a product has the bits that it has
// alone, so that what comes back has the bits of one rank. An exchange must not move while a tape reads it.
class ExpertExchange {
 public:
  // `starts` [E + 1] on the device has the first row of each expert, of `rows` rows of this rank. Without a group, in a
  // pass that is only measured, rows() is the most that can come if each rank has `rows`.
  ExpertExchange(const tensor::Exec& exec, const shape::Experts& how, const ExpertRanks& ranks, const int32_t* starts,
                 int64_t rows);
  ExpertExchange(const ExpertExchange&) = delete;
  ExpertExchange& operator=(const ExpertExchange&) = delete;

  int64_t rows() const { return rows_; }                              // rows that this rank's experts get
  const int32_t* starts() const { return starts_on_device_.data(); }  // [own + 1] first row of each of them
  // bring() sends a rank's own rows [R, width] to the ranks of their experts, and writes to `to` [rows(), width] those
  // that this rank's experts get, sorted by expert and then by rank. take_back() goes the other way. All lie on the
  // device; `scratch` is left as it was.
  void bring(tensor::Arena& scratch, const float* from, int64_t width, float* to) const;
  void take_back(tensor::Arena& scratch, const float* from, int64_t width, float* to) const;

 private:
  void place_rows(const shape::Experts& how, const std::vector<int32_t>& all_starts);
  void move(const tensor::HostRead& from, const tensor::HostEdit& to, const std::vector<size_t>& counts,
            int64_t width) const;

  tensor::Exec exec_;
  ExpertRanks ranks_;
  int64_t own_rows_, rows_ = 0;
  std::vector<size_t> counts_, back_counts_;           // [from · ranks + to] rows of bring() and of take_back()
  std::vector<int32_t> starts_, by_expert_, by_rank_;  // starts(); by expert the place among arrived rows; its inverse
  tensor::OnDevice<int32_t> starts_on_device_, by_expert_on_device_, by_rank_on_device_;
};

}  // namespace collimate::model
