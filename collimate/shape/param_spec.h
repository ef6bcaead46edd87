#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collimate/shape/model_shape.h"

namespace collimate::shape {

// How one dim of a parameter is laid out over the mesh.
struct DimSpec {
  std::string axis;             // "" replicated, else "tp", "pp", "ep"
  std::vector<int64_t> blocks;  // sizes of the pieces fused in this dim (q/k/v, gate/up); empty for one piece
  int64_t unit = 1;             // smallest number of entries that stay together (a head)
  bool replicate = false;       // repeated when there are fewer units than ranks (GQA)
};

// Rows or columns [first, first + count) of a whole parameter, which a rank has.
struct Piece {
  int64_t first = 0;
  int64_t count = 0;
  int64_t copies = 1;  // so many neighbouring ranks have them
  bool operator==(const Piece&) const = default;
};

enum class ParamKind { kEmbedding, kLinear, kNorm, kOffsetNorm, kBias };  // norms of weights, of 1 and weights

// A Part says what a parameter is for, the same for all families.
enum class Part {
  kEmbedding,
  kProjectIn,  // from the embedding to the stream
  kPositions,
  kEmbeddingNorm,
  kAttentionNorm,
  kQueryKeyValue,
  kQueryDown,  // of latent attention: what it has in place of kQueryKeyValue, from here to kKeyValueUp
  kQueryDownNorm,
  kQuery,
  kKeyValueDown,  // the key that all heads share, then the latent
  kKeyValueDownNorm,
  kKeyValueUp,  // each head's own part of its key, then its value
  kQueryNorm,
  kKeyNorm,
  kSinks,
  kAttentionOutput,
  kBehindAttention,  // a norm
  kMlpNorm,
  kUp,  // gate and up; in a block of experts those that every token passes, as the next
  kDown,
  kBehindMlp,  // a norm
  kRouter,     // its bias is that of the choice
  kExpertUp,   // gate and up of one expert after the other, each with its down behind it
  kExpertDown,
  kSharedGate,
  kFinalNorm,
  kProjectOut,  // from the stream to the head
  kHead,        // of the language model, unless tied
  kScore,       // or value: in its place
  kAdapter
};

// One parameter: its Hugging Face name, its place in the flat segments and its layout. `offset` counts floats.
struct ParamSpec {
  std::string name;
  Part part = Part::kEmbedding;
  ParamKind kind = ParamKind::kLinear;
  std::vector<int64_t> sizes;  // as used here: linear weights are [out, in] for every family
  std::vector<DimSpec> dims;
  int segment = 0;  // 0 embedding, 1 … layers the blocks, layers + 1 the head; shape::local has more
  int runs_in = 0;  // the segment whose pass reads it: its own, but of an adapter or expert that of its block
  int expert = -1;  // of its block, which it belongs to; -1: none
  int64_t offset = 0;
  bool transposed_in_file = false;  // GPT-2 stores [in, out]
  int64_t interleaved = 0;   // the file has so many pieces of rows unit by unit: q, k, v of each head; 0: as here
  int64_t paired = 0;        // of each unit's first so many rows the file has i and i + half side by side
  int64_t trailing = 0;      // each unit's first so many rows are its last ones in the file, in their order there
  int64_t file_rows = 0;     // the file has a single dim as so many rows; 0: as here
  int64_t grouped = 0;       // the file has so many query heads, then a key's and a value's, of each key-value head
  std::string stacked = {};  // the file's tensor that holds those of all of a block's experts; "": one of its own
  bool decay = true;         // weight decay: none on biases and norms
  // Parameters that run as one linear layer (q/k/v, gate/up) lie side by side without a gap. The first carries their
  // number, the others 0; a parameter on its own carries 1.
  int fused = 1;
  // Dim of a rank's own parameter (shape::local) that is cut, its size in the whole parameter, and what the rank has of
  // that, side by side: none of what another pipeline stage has; -1 where the rank has all.
  int cut = -1;
  int64_t whole = 0;
  std::vector<Piece> pieces = {};
  int64_t count() const;
  bool absent() const { return cut >= 0 && pieces.empty(); }
  bool reordered() const {
    return interleaved > 0 || grouped > 0 || paired > 0 || trailing > 0;
  }  // rows have other places in the file
  // Returns where the file has a row.
  int64_t file_row(int64_t row) const;
  int64_t file_head(int64_t head) const;  // of a grouped parameter
};

// The parameters of a shape in segment order, offsets padded to 16 floats but inside a fused group. Tied embeddings
// appear once, in segment 0.
std::vector<ParamSpec> param_specs(const ModelShape& shape);
// The parameters of the linear layer that begins at specs[first]: that one and those fused to it.
std::span<const ParamSpec> fused_layer(std::span<const ParamSpec> specs, int64_t first);
// Rows of those parameters together.
int64_t fused_rows(std::span<const ParamSpec> specs, int64_t first);
// Whether a parameter is a linear layer's weight: by kind, or as the embedding that the language model's head is tied
// to.
bool is_linear(const ModelShape& shape, const ParamSpec& spec);
// Floats of each segment, with padding.
std::vector<int64_t> segment_floats(const std::vector<ParamSpec>& specs);

}  // namespace collimate::shape
