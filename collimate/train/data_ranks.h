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

// The ranks that train the same pieces of a model.
struct TrainingRanks {
  comm::Group* rows = nullptr;       // data-parallel ranks, each with rows of its own; null: one
  model::ContextRanks context = {};  // ranks that have the same rows, and some tokens of each
  comm::Group* copies = nullptr;     // where there are both: all of them, a data-parallel rank's beside each other
  // Where these share the experts of a mixture: those of them that have the same experts; null: no other one has.
  comm::Group* expert_copies = nullptr;
};

// Ranks that hold copies of the trained weights do this together. All call the same methods in the same order;
// blocking. Without a group there is one rank, and every sum is what it was. Ranks that share experts have copies of a
// segment of experts with other ranks than of the rest: each of their experts has met the tokens of all of them.
class DataRanks {
 public:
  // `zero`, the stage of ZeRO: 0, each rank updates all of the weights; 1, its share of them alone, and 2, it also
  // keeps no more of the gradient than that. 3: as 2, with weights that the same ranks share.
  DataRanks(model::Weights& weights, tensor::Exec exec, const TrainingRanks& ranks, int zero, double deadline_seconds);

  comm::Group* group() const { return group_; }            // of all copies; null for one rank
  bool have_own_rows() const { return rows_ != nullptr; }  // each of several
  // The part of a segment that this rank updates; nothing of one that is frozen.
  model::Share share(int segment) const;
  // The part of each segment that this rank saves: what the ranks have alike is written once. Nothing of one that no
  // training changes, or that another tensor rank has too and saves.
  std::vector<model::Share> saved_shares() const;

  // Sums what is said of rows over those who have some of their own, in fp32 by the group's tree.
  std::vector<float> sum_of_rows(std::vector<float> values) const;
  batch::GlobalCounts sum_counts(const batch::GlobalCounts& counts) const;
  // These ranks' lists one after another; `begin` becomes where this rank's is.
  std::vector<float> join(const std::vector<float>& mine, int64_t& begin) const;

  // An update begins: gradients are zero.
  void zero_gradients();
  // Gives the memory of gradients back: the next update's begin with zeros.
  void drop_gradients();
  // Micro-batches that a rank of so many has to take part in: where ranks share experts, or gradients, which are summed
  // with each, as many as any of all has.
  int64_t most_micro_batches(int64_t own) const;
  // A micro-batch has completed the gradient of a segment.
  void segment_done(int segment);
  // All segments are done: the gradients are summed over the ranks, all of them or each rank's share.
  void reduce_gradients();
  // The gradient of this rank's share of a segment, once all are summed; null where it is frozen.
  float* gradient(int segment);
  // The total L2 norm of the sums: of one tensor and expert rank the same bits with and without shares.
  double gradient_norm();
  // Each rank has changed its share of the values: all of them become known to all.
  void gather_values();

 private:
  // The ranks that have copies of a segment; null for this one alone.
  comm::Group* group_of(int segment) const { return weights_.is_of_experts(segment) ? expert_copies_ : group_; }
  static int size_of(const comm::Group* group) { return group == nullptr ? 1 : group->size(); }
  bool keeps_shares() const { return zero_ > 1; }  // of gradients
  double squares_of(int segment, int64_t begin, int64_t end);
  double squares_of_pieces();
  double squares_of_pieces(bool of_experts);
  std::vector<double> squares_by_segment();
  // The first and the last pipeline stage each compute a part of the gradient of an embedding that is the head too.
  bool is_at_both_ends(int segment) const;
  void sum_ends();
  // Adds a whole gradient to this rank's share of the sum, summed over the ranks.
  void add_to_share(int segment);
  // Ranks that have the same piece of a parameter compute a part of its gradient each, which become their sum.
  void sum_copies(int segment, float* gradient) const;
  // Sums over the ranks that have a segment: this rank's share of `gradient` where it has one, else all.
  void sum_over_ranks(int segment, const tensor::HostEdit& gradient) const;
  // As of model::exchange_pieces over the ranks that have a segment, where they have shares.
  void exchange(int segment, std::span<std::byte> all, int64_t piece_bytes) const;

  model::Weights& weights_;
  tensor::Exec exec_;
  comm::Group *group_, *rows_, *expert_copies_;
  int zero_;
  double deadline_seconds_;
  std::vector<tensor::Buffer> summed_;  // by segment, of this rank's share; empty unless keeps_shares()
};

}  // namespace collimate::train
