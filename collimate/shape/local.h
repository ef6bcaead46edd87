#pragma once

#include <span>
#include <string>
#include <vector>

#include "collimate/shape/model_shape.h"
#include "collimate/shape/param_spec.h"

namespace collimate::shape {

// One of the ranks that share a model's matrices: tensor parallelism (Shoeybi et al. 2019, arXiv 1909.08053). Layers
// that read the stream are cut by their outputs, those that write to it by their inputs, so that each rank has whole
// heads and a part of each MLP; of fewer key-value heads than ranks several have the same one; embedding and head by
// the vocabulary, in whole chunks of the softmax's sums, unless it is too small or the ranks do not divide their
// number. Norms, routers, positions and score heads are whole on every rank.
struct TensorRank {
  int rank = 0;
  int ranks = 1;
  bool operator==(const TensorRank&) const = default;
};

// The shape of what that rank computes: its heads, its part of each MLP's and expert's inner width. InputError naming
// `where` when heads or a width are no multiple of the ranks, or key-value heads neither that nor a divisor of them.
ModelShape local_shape(const ModelShape& whole, const TensorRank& of, const std::string& where);
// That rank's parameters, of those of the whole model: the same names in the same order; cut ones have the rank's
// sizes and `pieces`, and all lie in the rank's own segments.
std::vector<ParamSpec> local(std::vector<ParamSpec> specs, const TensorRank& of);

// Whether so many tensor ranks have pieces of a parameter, else all of it.
bool is_cut(const ParamSpec& spec, int ranks);
// The tokens whose rows of embedding and head the rank has.
Piece vocabulary_piece(const ModelShape& whole, const TensorRank& of);

// Between a parameter's values of the whole model and those of a rank, [mine.sizes].
void take_pieces(const ParamSpec& mine, std::span<const float> whole, std::span<float> out);
void put_pieces(const ParamSpec& mine, std::span<const float> values, std::span<float> whole);

}  // namespace collimate::shape
