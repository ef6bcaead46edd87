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

// These ranks hold the pipeline stages of one model: a pass goes through all of them. By default there is one stage.
struct StageRanks : RankLine {
  shape::StageRank place;
  bool several() const { return place.ranks > 1; }
  // Sends values [count] on the device to the rank that is `behind` places behind this one (1 or -1), or receives them
  // from there; behind the last rank is the first one, which has the next run of blocks. A send returns when they have
  // been received.
  void send(const tensor::Exec& exec, const float* values, int64_t count, int behind) const;
  void receive(const tensor::Exec& exec, float* values, int64_t count, int behind) const;
  // Makes values [count] on the device of the last stage known to all stages.
  void share_last(const tensor::Exec& exec, float* values, int64_t count) const;
  void share_last(std::span<float> values) const;  // of values on the host
  int neighbour(int behind) const { return (place.rank + behind + place.ranks) % place.ranks; }
  using RankLine::sum;
  // Returns the sum of lists of equal length, one of each stage, added in the order of the stages.
  std::vector<double> sum(const std::vector<double>& values) const;
  // Replaces values of the first and the last stage by their sum. These two call it: both have an embedding that is
  // also the head.
  void sum_ends(std::span<float> values) const;
};

// Holds the ranks that share a model, by mesh axis.
struct ModelRanks {
  TensorRanks tensor = {};        // each has its pieces of parameters
  StageRanks stages = {};         // each has the parameters of its stage
  DataShares shares = {};         // they have the same pieces, of which each keeps a share
  ExpertRanks experts = {};       // each has some of a mixture's experts
  DataShares expert_shares = {};  // as shares, but for experts alone, by the ranks that have the same ones
  shape::ModelRank place() const { return {tensor.place, stages.place, experts.place}; }
  bool several() const { return tensor.several() || stages.several() || shares.several() || experts.several(); }
  // Returns whether this rank is the one that writes files for all.
  bool writes() const {
    return tensor.place.rank == 0 && stages.place.is_first() && shares.rank == 0 && experts.place.rank == 0;
  }
};

}  // namespace collimate::model
