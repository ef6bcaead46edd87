#pragma once

#include <cstdint>
#include <vector>

#include "collimate/model/expert_ranks.h"
#include "collimate/shape/block.h"
#include "collimate/tensor/arena.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/host_access.h"

namespace collimate::model {

// The way of one layer's rows to the ranks that have their experts, and back: each rank has a row for each of its
// tokens and experts that it chose, by expert. All ranks make one and call the same, in the same order; blocking. A row
// is moved and never changed, and a product of rows has the bits of each one alone, so that what comes back has the
// bits of one rank. Stays where it is while a tape reads it.
class ExpertExchange {
 public:
  // `starts` [E + 1] on the device: the first row of each expert, of `rows` in all. Without a group it is for the most
  // rows that can come if each rank has as many.
  ExpertExchange(const tensor::Exec& exec, const shape::Experts& how, const ExpertRanks& ranks, const int32_t* starts,
                 int64_t rows);
  ExpertExchange(const ExpertExchange&) = delete;
  ExpertExchange& operator=(const ExpertExchange&) = delete;

  int64_t rows() const { return rows_; }                              // that the experts here get
  const int32_t* starts() const { return starts_on_device_.data(); }  // [own + 1] first of each of them
  // A rank's own rows [R, width] to rows() of the experts here, by expert and of one by rank; and the other way. On the
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
  std::vector<size_t> counts_, back_counts_;           // [from · ranks + to] rows, of both ways
  std::vector<int32_t> starts_, by_expert_, by_rank_;  // as starts(); the place among those that came, and its inverse
  tensor::OnDevice<int32_t> starts_on_device_, by_expert_on_device_, by_rank_on_device_;
};

}  // namespace collimate::model
