#pragma once

#include <span>
#include <string>
#include <vector>

#include "collimate/shape/model_shape.h"
#include "collimate/shape/param_spec.h"
#include "collimate/shape/rank.h"

namespace collimate::shape {

// One of the ranks that share a model's matrices: tensor parallelism (Shoeybi et al. 2019, arXiv 1909.08053). Layers
// that read the stream are cut by their outputs, those that write to it by their inputs, so that each rank has whole
// heads and a part of each MLP; of fewer key-value heads than ranks several have the same one; embedding and head by
// the vocabulary, in whole chunks of the softmax's sums, unless it is too small or the ranks do not divide their
// number. Norms, routers, positions and score heads are whole on every rank.
using TensorRank = RankOf<struct TensorParallel>;

// One of the ranks that share a model's blocks, one behind the other: pipeline parallelism (Huang et al. 2019, arXiv
// 1811.06965). The first one has what is ahead of the blocks too, the last one what is behind them, and the blocks are
// cut so that the stage with the most to compute, the head counted, has as little as may be. An embedding that is the
// head too is on the first and on the last one.
using StageRank = RankOf<struct PipelineParallel>;

// One of the ranks that share the experts of a mixture: expert parallelism (Lepikhin et al. 2020, arXiv 2006.16668).
// Each has some whole experts of every block, rank r of R those from E r / R on, and all else of the model; of each of
// its experts it has what its tensor rank has.
using ExpertRank = RankOf<struct ExpertParallel>;

// A rank's place among those that share a model.
struct ModelRank {
  TensorRank tensor;
  StageRank stage;
  ExpertRank experts;
};

// The shape of what that rank computes: its blocks, in them its heads and its part of each MLP's and expert's inner
// width. InputError naming `where` when heads or a width are no multiple of the tensor ranks, or key-value heads
// neither that nor a divisor of them, when one norm is of the heads of several of these ranks, or when there are fewer
// blocks than stages, or fewer experts than expert ranks.
ModelShape local_shape(const ModelShape& whole, const ModelRank& of, const std::string& where);
// That rank's parameters, of those of the whole model: the same names in the same order; cut ones have the rank's
// sizes and `pieces`, those that the rank's stage does not read have none, nor have experts of other ranks, and all lie
// in the rank's own segments. Where several ranks share experts, those of each block lie in a segment of their own,
// behind all of the whole model's (first_expert_segment): other ranks have copies of them than of the rest.
std::vector<ParamSpec> local(std::vector<ParamSpec> specs, const ModelShape& whole, const ModelRank& of);
// One parameter as tensor ranks alone cut it.
ParamSpec local(const ParamSpec& whole, const TensorRank& of);
// The first stage that reads a parameter of the whole model.
int stage_of(const ParamSpec& spec, const ModelShape& whole, int stages);
// By parameter: that stage.
std::vector<int> stages_of(const std::vector<ParamSpec>& specs, const ModelShape& whole, int stages);
// Whether the stage has a parameter that an earlier one has too: an embedding that is the head.
bool is_second_copy(const ParamSpec& spec, const ModelShape& whole, const StageRank& of);

// The experts of a block that the rank has.
Piece expert_piece(const Experts& experts, const ExpertRank& of);
// The rank that has a parameter's expert; 0 for one of no expert, which all have.
int expert_rank_of(const ParamSpec& spec, const ModelShape& whole, int ranks);
// The segment of the experts of block 0 where ranks share them; that of block b is the b-th behind it.
int first_expert_segment(const std::vector<ParamSpec>& whole_specs);

// Whether so many tensor ranks have pieces of a parameter, else all of it.
bool is_cut(const ParamSpec& spec, int ranks);
// The tokens whose rows of embedding and head the rank has.
Piece vocabulary_piece(const ModelShape& whole, const TensorRank& of);

// Between a parameter's values of the whole model and those of a rank, [mine.sizes].
void take_pieces(const ParamSpec& mine, std::span<const float> whole, std::span<float> out);
void put_pieces(const ParamSpec& mine, std::span<const float> values, std::span<float> whole);

}  // namespace collimate::shape
