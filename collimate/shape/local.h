#pragma once

#include <span>
#include <string>
#include <vector>

#include "collimate/shape/model_shape.h"
#include "collimate/shape/param_spec.h"
#include "collimate/shape/rank.h"

namespace collimate::shape {

// A TensorRank is one of the ranks that share a model's matrices: tensor parallelism (Shoeybi et al. 2019, arXiv
// 1909.08053). Layers that read the stream are cut by their outputs, layers that write to it by their inputs, so that
// each rank has whole heads and a part of each MLP. Where there are fewer key-value heads than ranks, several ranks
// have the same one. Embedding and head are cut by the vocabulary, in whole chunks of the softmax's sums, unless the
// vocabulary is too small or the ranks do not divide the number of chunks. Norms, routers, positions and score heads
// are whole on every rank.
using TensorRank = RankOf<struct TensorParallel>;

// A StageRank is one of the ranks that share a model's blocks, one after another: pipeline parallelism (Huang et al.
// 2019, arXiv 1811.06965). The first stage also has the parts ahead of the blocks, the last one those behind them.
// Unless `layers` says how many blocks each stage has, the cut makes the largest amount of computation of any stage,
// head included, as small as possible. An embedding that is also the head is on the first and on the last stage. With
// several `runs` a rank has that many stages, which are not neighbours (Narayanan et al. 2021, arXiv 2104.04473,
// section 2.2): its run i is stage i · ranks + rank.
struct StageRank {
  int rank = 0;
  int ranks = 1;
  std::vector<int64_t> layers = {};  // number of blocks of each of the ranks · runs stages; empty: as above
  int runs = 1;
  bool operator==(const StageRank&) const = default;
  bool is_first() const { return rank == 0; }
  bool is_last() const { return rank + 1 == ranks; }
};

// An ExpertRank is one of the ranks that share the experts of a mixture: expert parallelism (Lepikhin et al. 2020,
// arXiv 2006.16668). Each has some whole experts of every block (rank r of R those from E r / R on) and all the rest of
// the model; of each of its experts it has the part that its tensor rank has.
using ExpertRank = RankOf<struct ExpertParallel>;

// A ModelRank is a rank's place among the ranks that share a model.
struct ModelRank {
  TensorRank tensor;
  StageRank stage;
  ExpertRank experts;
};

// Returns the shape of what that rank computes: its blocks, with its heads and its part of the inner width of each MLP
// and expert. Throws InputError, which names `where`, when heads or a width are no multiple of the tensor ranks, when
// key-value heads are neither a multiple nor a divisor of them, when one norm spans heads of several tensor ranks, when
// there are fewer blocks than stages, when the layers of the stages are not all blocks, or when there are fewer experts
// than expert ranks.
ModelShape local_shape(const ModelShape& whole, const ModelRank& of, const std::string& where);
// Returns that rank's parameters, made from those of the whole model: the same names in the same order. Cut parameters
// have the rank's sizes and `pieces`. Parameters that only other stages read and those of other ranks' experts have no
// values. All lie in the rank's own segments. Where ranks share experts, the experts of each block lie in a segment of
// their own, behind all segments of the whole model (first_expert_segment), because copies of them are on other ranks
// than copies of the rest.
std::vector<ParamSpec> local(std::vector<ParamSpec> specs, const ModelShape& whole, const ModelRank& of);
// Returns one parameter as tensor ranks cut it, whatever its stage and expert.
ParamSpec local(const ParamSpec& whole, const TensorRank& of);
// Returns the first rank of the stages that reads a parameter of the whole model. `any` is one of these ranks.
int stage_of(const ParamSpec& spec, const ModelShape& whole, const StageRank& any);
// Does the same for each parameter of a list.
std::vector<int> stages_of(const std::vector<ParamSpec>& specs, const ModelShape& whole, const StageRank& any);
// Returns whether the stage has a parameter that an earlier stage has too: an embedding that is also the head.
bool is_second_copy(const ParamSpec& spec, const ModelShape& whole, const StageRank& of);

// Returns the experts of a block that the rank has.
Piece expert_piece(const Experts& experts, const ExpertRank& of);
// Returns the rank that has a parameter's expert; 0 for a parameter of no expert, which all ranks have.
int expert_rank_of(const ParamSpec& spec, const ModelShape& whole, int ranks);
// Returns the segment of the experts of block 0 where ranks share experts; the segment of block b is b further.
int first_expert_segment(const std::vector<ParamSpec>& whole_specs);

// Returns whether so many tensor ranks each have a piece of a parameter; else each has all of it.
bool is_cut(const ParamSpec& spec, int ranks);
// Returns the tokens whose rows of embedding and head the rank has.
Piece vocabulary_piece(const ModelShape& whole, const TensorRank& of);

// Copy a cut parameter's values from the whole model's to those of a rank, [mine.sizes], and back.
void take_pieces(const ParamSpec& mine, std::span<const float> whole, std::span<float> out);
void put_pieces(const ParamSpec& mine, std::span<const float> values, std::span<float> whole);

}  // namespace collimate::shape
