#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collimate/batch/quantities.h"
#include "collimate/comm/group.h"
#include "collimate/model/context_cut.h"
#include "collimate/model/share.h"
#include "collimate/model/weights.h"
#include "collimate/tensor/exec.h"

namespace collimate::train {

// Holds the ranks that train the same pieces of a model.
struct TrainingRanks {
  comm::Group* rows = nullptr;       // data-parallel ranks, each with rows of its own; null: one
  model::ContextRanks context = {};  // ranks that have the same rows, and some tokens of each
  comm::Group* copies = nullptr;     // all, where there are both; the context ranks of the same rows are adjacent
  // Where these ranks share a mixture's experts, this has those with the same experts; null: no other rank has them.
  comm::Group* expert_copies = nullptr;
};

// Does what ranks that hold copies of the trained weights do together. All call the same functions in the same order;
// calls block. Without a group there is one rank, and sums leave values as they are. Where ranks share experts, a
// segment of experts has copies on other ranks than the other segments have: each of these experts has met the tokens
// of all ranks that share them.
class DataRanks {
 public:
  // `zero` is the stage of ZeRO. 0: each rank updates all of the weights; 1: only its share of them; 2: it also keeps
  // no more of the gradient than that share; 3: as 2, and the same ranks share the weights.
  DataRanks(model::Weights& weights, tensor::Exec exec, const TrainingRanks& ranks, int zero, double deadline_seconds);

  comm::Group* group() const { return group_; }            // of all copies; null for one rank
  bool have_own_rows() const { return rows_ != nullptr; }  // whether several ranks each have rows of their own
  // Returns the part of a segment that this rank updates; nothing of a frozen segment.
  model::Share share(int segment) const;
  // Returns the part of each segment that this rank saves: ranks that have the same values save each of them once. The
  // share is empty for a segment that no training changes, or that another tensor rank also has and saves.
  std::vector<model::Share> saved_shares() const;

  // Sums numbers about rows over the ranks that have rows of their own, in fp32 by the group's tree.
  std::vector<float> sum_of_rows(std::vector<float> values) const;
  // Sums whole numbers of up to 2^36 over the same ranks, exactly.
  std::vector<double> sum_large(const std::vector<double>& values) const;
  batch::GlobalCounts sum_counts(const batch::GlobalCounts& counts) const;
  // Returns the lists of the same ranks one after another; `begin` is set to where this rank's list begins.
  std::vector<float> join(const std::vector<float>& mine, int64_t& begin) const;

  // Begins an update: all gradients become zero.
  void zero_gradients();
  // Gives back the memory of gradients; those of the next update begin with zeros.
  void drop_gradients();
  // Returns in how many micro-batches a rank with `own` ones takes part. Where ranks share experts, or keep shares of
  // gradients, which are summed after each micro-batch, these are as many as the rank with the most has.
  int64_t most_micro_batches(int64_t own) const;
  // Is to be called when a micro-batch has completed the gradient of a segment.
  void segment_done(int segment);
  // Is to be called when all segments are done: sums the gradients over the ranks, all of them or each rank's share.
  void reduce_gradients();
  // Returns the gradient of this rank's share of a segment, once all are summed; null where it is frozen.
  float* gradient(int segment);
  // Returns the total L2 norm of the sums. With one tensor and expert rank shares do not change its bits.
  double gradient_norm();
  // Makes the share of the values that each rank has changed known to all ranks.
  void gather_values();

 private:
  // Returns the ranks that have copies of a segment; null if only this one has it.
  comm::Group* group_of(int segment) const { return weights_.is_of_experts(segment) ? expert_copies_ : group_; }
  static int size_of(const comm::Group* group) { return group == nullptr ? 1 : group->size(); }
  bool keeps_shares() const { return zero_ > 1; }  // of gradients
  double squares_of(int segment, int64_t begin, int64_t end);
  double squares_of_pieces();
  double squares_of_pieces(bool of_experts);
  std::vector<double> squares_by_segment();
  // The first and the last pipeline stage each compute a part of the gradient of an embedding that is also the head:
  // these two functions find and sum it.
  bool is_at_both_ends(int segment) const;
  void sum_ends();
  // Sums a segment's whole gradient over the ranks and adds this rank's share of that to summed_.
  void add_to_share(int segment);
  // Sums the parts of a gradient that tensor ranks with the same piece of a parameter each compute.
  void sum_copies(int segment, float* gradient) const;
  // Sums over the ranks that have a segment: this rank's share of `gradient` where it has one, else all of it.
  void sum_over_ranks(int segment, const tensor::HostEdit& gradient) const;
  // Calls model::exchange_pieces for the ranks that have a segment, where they have shares.
  void exchange(int segment, std::span<std::byte> all, int64_t piece_bytes) const;

  model::Weights& weights_;
  tensor::Exec exec_;
  comm::Group *group_, *rows_, *expert_copies_;
  int zero_;
  double deadline_seconds_;
  std::vector<tensor::Buffer> summed_;  // by segment, of this rank's share; empty unless keeps_shares()
};

}  // namespace collimate::train
