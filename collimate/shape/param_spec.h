#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collimate/shape/model_shape.h"

namespace collimate::shape {

// A DimSpec says how one dim of a parameter is laid out over the mesh.
struct DimSpec {
  std::string axis;             // mesh axis that cuts this dim: "tp", or "" for none
  std::vector<int64_t> blocks;  // sizes of the pieces fused in this dim (q/k/v, gate/up); empty for one piece
  int64_t unit = 1;             // smallest number of entries that stay together (a head)
  bool replicate = false;       // pieces repeat where there are fewer units than ranks (GQA)
};

// A Piece is the rows or columns [first, first + count) of a whole parameter that a rank has.
struct Piece {
  int64_t first = 0;
  int64_t count = 0;
  int64_t copies = 1;  // number of neighbouring ranks that have them
  bool operator==(const Piece&) const = default;
};

enum class ParamKind { kEmbedding, kLinear, kNorm, kOffsetNorm, kBias };  // norms by weights or 1 + weights

// A Part says what a parameter is for, in one vocabulary for all families.
enum class Part {
  kEmbedding,
  kProjectIn,  // projects from the embedding to the stream
  kPositions,
  kEmbeddingNorm,
  kAttentionNorm,
  kQueryKeyValue,
  kQueryDown,  // from here to kKeyValueUp: latent attention, in place of kQueryKeyValue
  kQueryDownNorm,
  kQuery,
  kKeyValueDown,  // rows: the key that all heads share, then the latent
  kKeyValueDownNorm,
  kKeyValueUp,  // rows: each head's own part of its key, then its value
  kQueryNorm,
  kKeyNorm,
  kSinks,
  kAttentionOutput,
  kBehindAttention,  // a norm
  kMlpNorm,
  kUp,  // gate and up; in a block of experts this and kDown are those that every token passes
  kDown,
  kBehindMlp,  // a norm
  kRouter,     // weight, bias of the scores, and bias for the choice
  kExpertUp,   // gate and up, one expert after another, each followed by its down
  kExpertDown,
  kSharedGate,
  kFinalNorm,
  kProjectOut,  // projects from the stream to the head
  kHead,        // the language model's, unless tied
  kScore,       // a score or value head, in place of kHead
  kAdapter
};

// A ParamSpec is one parameter: its Hugging Face name, its place in the flat segments, and its layout. `offset` counts
// floats.
struct ParamSpec {
  std::string name;
  Part part = Part::kEmbedding;
  ParamKind kind = ParamKind::kLinear;
  std::vector<int64_t> sizes;  // sizes in memory: linear weights are [out, in] in every family
  std::vector<DimSpec> dims;
  int segment = 0;  // 0 embedding, 1 … layers the blocks, layers + 1 the head; shape::local has more
  int runs_in = 0;  // the segment whose pass reads it; for an adapter or expert that of its block, else its own
  int expert = -1;  // number of the expert of its block to which it belongs; -1: none
  int64_t offset = 0;
  bool transposed_in_file = false;  // GPT-2 stores [in, out]
  int64_t interleaved = 0;   // the file alternates so many pieces of rows by units: q, k, v of each head; 0: as here
  int64_t paired = 0;        // in so many first rows of each unit the file has i and i + half side by side
  int64_t trailing = 0;      // so many first rows of each unit come last in the file's unit
  int64_t file_rows = 0;     // the file stores the single dim as a matrix with so many rows; 0: as a vector
  int64_t grouped = 0;       // for each key-value head the file has so many query heads, then the key, then the value
  std::string stacked = {};  // the file's tensor of all experts of a block, with this one in it; "": one of its own
  bool decay = true;         // whether weight decay applies: not to biases and norms
  // Parameters that run as one linear layer (q/k/v, gate/up) lie side by side without a gap. The first of them has
  // their number here, the others 0; a parameter that runs alone has 1.
  int fused = 1;
  // For a rank's own parameter (shape::local): the dim that is cut (-1: the rank has all), its size in the whole
  // parameter, and the pieces of it that the rank has side by side. A parameter of another pipeline stage has no
  // pieces.
  int cut = -1;
  int64_t whole = 0;
  std::vector<Piece> pieces = {};
  int64_t count() const;
  bool absent() const { return cut >= 0 && pieces.empty(); }
  bool reordered() const {
    return interleaved > 0 || grouped > 0 || paired > 0 || trailing > 0;
  }  // rows are in another order in the file
  // Returns the row of the file that holds a row.
  int64_t file_row(int64_t row) const;
  int64_t file_head(int64_t head) const;  // the same for heads of a grouped parameter
};

// Returns the parameters of a shape in the order of segments. Offsets are multiples of 16 floats, except inside a fused
// group. Tied embeddings appear once, in segment 0.
std::vector<ParamSpec> param_specs(const ModelShape& shape);
// Returns the parameters of the linear layer that begins at specs[first]: that one and those that are fused to it.
std::span<const ParamSpec> fused_layer(std::span<const ParamSpec> specs, int64_t first);
// Returns the rows of these parameters together.
int64_t fused_rows(std::span<const ParamSpec> specs, int64_t first);
// Returns whether a parameter is a linear layer's weight: by its kind, or because it is the embedding to which the
// language model's head is tied.
bool is_linear(const ModelShape& shape, const ParamSpec& spec);
// Returns the floats of each segment, with padding.
std::vector<int64_t> segment_floats(const std::vector<ParamSpec>& specs);

}  // namespace collimate::shape
