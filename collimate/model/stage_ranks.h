#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/model/data_shares.h"
#include "collimate/model/expert_ranks.h"
#include "collimate/model/rank_line.h"
#include "collimate/model/tensor_ranks.h"
#include "collimate/shape/local.h"
#include "collimate/tensor/exec.h"

namespace collimate::model {

// The ranks that hold the stages of one model: a pass goes through all of them. One stage by default.
struct StageRanks : RankLine {
  shape::StageRank place;
  bool several() const { return place.ranks > 1; }
  // Values [count] on the device go to the stage that is so many behind this one (1 or -1), or come from there. A send
  // returns when they have been received.
  void send(const tensor::Exec& exec, const float* values, int64_t count, int behind) const;
  void receive(const tensor::Exec& exec, float* values, int64_t count, int behind) const;
  // Values [count] on the device of the last stage become known to all.
  void share_last(const tensor::Exec& exec, float* values, int64_t count) const;
  void share_last(std::span<float> values) const;  // the host's
  using RankLine::sum;
  // Sums lists of one length, one of each stage, in the order of the stages.
  std::vector<double> sum(const std::vector<double>& values) const;
  // An embedding that is the head too is on the first and the last stage, which call this: the sum of both.
  void sum_ends(std::span<float> values) const;
};

// The ranks that share a model.
struct ModelRanks {
  TensorRanks tensor = {};        // each has its pieces
  StageRanks stages = {};         // each has those of its stage
  DataShares shares = {};         // they have the same pieces, of which each keeps a share
  ExpertRanks experts = {};       // each has its own of a mixture's experts
  DataShares expert_shares = {};  // as shares, of the ranks that have the same experts, and of these alone
  shape::ModelRank place() const { return {tensor.place, stages.place, experts.place}; }
  bool several() const { return tensor.several() || stages.several() || shares.several() || experts.several(); }
  // Whether this rank is the one that writes files for all.
  bool writes() const {
    return tensor.place.rank == 0 && stages.place.is_first() && shares.rank == 0 && experts.place.rank == 0;
  }
};

}  // namespace collimate::model
