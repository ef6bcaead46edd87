#include "collimate/shape/param_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "collimate/base/at.h"
#include "collimate/shape/family.h"
#include "collimate/shape/spec_builder.h"
#include "collimate/shape/vocabulary.h"

namespace collimate::shape {
namespace {

// Has "tp" cut a parameter by rows (outputs), in whole units.
void cut_rows(ParamSpec& spec, int64_t unit, bool replicate = false) {
  spec.dims[0].axis = "tp";
  spec.dims[0].unit = unit;
  spec.dims[0].replicate = replicate;
}

ParamKind kind_of(NormKind norm) { return is_offset(norm) ? ParamKind::kOffsetNorm : ParamKind::kNorm; }

// DecoderParams walks a decoder's parts in the order of its segments and adds the parameters of each.
class DecoderParams {
 public:
  explicit DecoderParams(const ModelShape& shape)
      : shape_(shape), names_(find_family(shape.family, "model family").names) {}

  std::vector<ParamSpec> all() {
    out_.begin_segment(0);
    const int64_t chunk = vocab_chunk(shape_.vocabulary);
    cut_rows(out_.add(names_.embedding + ".weight", Part::kEmbedding, ParamKind::kEmbedding,
                      {shape_.vocabulary, shape_.table_width()}),
             chunk);
    add_projection(names_.project_in, Part::kProjectIn, shape_.hidden, shape_.embedding_width);
    if (shape_.learned_positions)
      out_.add(names_.positions + ".weight", Part::kPositions, ParamKind::kEmbedding,
               {shape_.max_positions + shape_.unused_positions, shape_.hidden});
    if (shape_.embedding_norm) add_norm(names_.embedding_norm, Part::kEmbeddingNorm, shape_.blocks.front().norm);
    for (int64_t layer = 0; layer < shape_.layers(); ++layer) {
      out_.begin_segment(static_cast<int>(layer) + 1);
      add_block(names_.block + std::to_string(layer) + ".", base::at(shape_.blocks, layer));
    }
    out_.begin_segment(static_cast<int>(shape_.layers()) + 1);
    if (!shape_.blocks.empty() && shape_.final_norm)
      add_norm(names_.final_norm, Part::kFinalNorm, shape_.blocks.back().norm);
    add_projection(names_.project_out, Part::kProjectOut, shape_.embedding_width, shape_.hidden);
    add_head();
    return out_.take();
  }

 private:
  // Adds a projection between stream and table, where the table has a width of its own.
  void add_projection(const std::string& name, Part part, int64_t rows, int64_t columns) {
    if (shape_.embedding_width > 0) out_.add(name + ".weight", part, ParamKind::kLinear, {rows, columns});
  }

  void add_block(const std::string& prefix, const Block& block) {
    const Attention& attention = block.attention;
    block_ = prefix;
    group_ = attention.heads / attention.kv_heads;
    const bool beside = block.parallel && !block.shared_norm && !names_.attention_norm_beside.empty();
    add_norm(prefix + (beside ? names_.attention_norm_beside : names_.attention_norm), Part::kAttentionNorm,
             block.norm);
    if (attention.latent.kv_rank > 0) {
      add_latent(prefix, attention);
    } else {
      add_by_rows(prefix, names_.query_key_value, Part::kQueryKeyValue,
                  {attention.query_width(), attention.kv_width(), attention.kv_width()}, attention.head_dim,
                  attention.bias);
    }
    if (attention.head_norm) {
      add_head_norm(prefix + names_.query_norm, Part::kQueryNorm, block, attention.query_norm_width());
      add_head_norm(prefix + names_.key_norm, Part::kKeyNorm, block, attention.key_norm_width());
    }
    if (attention.sinks)
      cut_rows(out_.add(prefix + names_.sinks, Part::kSinks, ParamKind::kBias, {attention.heads}), 1);
    add_by_columns(prefix + names_.attention_output, Part::kAttentionOutput, attention.output_width(),
                   attention.value_dim(), attention.output_bias);
    if (block.place == NormPlace::kAround)
      add_norm(prefix + names_.behind_attention, Part::kBehindAttention, block.norm);
    if (!block.shared_norm)
      add_norm(prefix + (beside ? names_.mlp_norm_beside : names_.mlp_norm), Part::kMlpNorm, block.norm);
    if (block.mlp.experts.count > 0) return add_experts(prefix, block.mlp.experts);
    const std::vector<int64_t> rows(block.mlp.gated ? 2 : 1, block.mlp.intermediate);
    add_by_rows(prefix, names_.up, Part::kUp, rows, 1, block.mlp.bias);
    add_by_columns(prefix + names_.down, Part::kDown, block.mlp.intermediate, 1, block.mlp.bias);
    if (block.place == NormPlace::kAround) add_norm(prefix + names_.behind_mlp, Part::kBehindMlp, block.norm);
  }

  void add_latent(const std::string& prefix, const Attention& attention) {
    const Latent& latent = attention.latent;
    const int64_t queries = attention.query_width(), low = latent.rope_dim + latent.kv_rank,
                  own = attention.head_dim - latent.rope_dim + latent.value_dim;
    if (latent.q_rank > 0) {
      add_whole(prefix + names_.query_down, Part::kQueryDown, latent.q_rank, attention.bias, [](ParamSpec&) {});
      out_.add(prefix + names_.query_down_norm + ".weight", Part::kQueryDownNorm, ParamKind::kNorm, {latent.q_rank});
    }
    ParamSpec& query = add_of_layer(prefix + (latent.q_rank > 0 ? names_.query_up : names_.query), Part::kQuery,
                                    queries, latent.q_rank > 0 ? latent.q_rank : shape_.hidden);
    cut_rows(query, attention.head_dim);
    turned_last(query, attention);
    add_whole(prefix + names_.key_value_down, Part::kKeyValueDown, low, attention.bias, [&](ParamSpec& spec) {
      spec.dims[0].unit = low;
      spec.dims[0].blocks = {latent.rope_dim, latent.kv_rank};
      turned_last(spec, attention);
    });
    out_.add(prefix + names_.key_value_down_norm + ".weight", Part::kKeyValueDownNorm, ParamKind::kNorm,
             {latent.kv_rank});
    cut_rows(add_of_layer(prefix + names_.key_value_up, Part::kKeyValueUp, attention.heads * own, latent.kv_rank), own);
  }

  // Adds the weight and, with `bias`, the bias of a layer that reads the stream and that every tensor rank has whole.
  template <class Adjust>
  void add_whole(const std::string& name, Part part, int64_t rows, bool bias, const Adjust& adjust) {
    adjust(add_of_layer(name, part, rows, shape_.hidden));
    if (bias) adjust(add_of_layer(name, part, rows, 0));
  }

  // Says that files have the rotated rows of a head behind its other rows.
  static void turned_last(ParamSpec& spec, const Attention& attention) {
    spec.trailing = attention.turned();
    if (attention.paired) spec.paired = attention.turned();
  }

  void add_experts(const std::string& prefix, const Experts& experts) {
    add_of_layer(prefix + names_.router, Part::kRouter, experts.count, shape_.hidden);
    if (experts.router_bias) add_of_layer(prefix + names_.router, Part::kRouter, experts.count, 0);
    if (experts.corrected)
      out_.add(prefix + names_.router + ".e_score_correction_bias", Part::kRouter, ParamKind::kBias, {experts.count});
    for (int64_t e = 0; e < experts.count; ++e) {
      const std::string expert = fmt::format("{}{}{}.", prefix, names_.experts, e);
      out_.begin_expert(static_cast<int>(e));
      add_by_rows(expert, names_.expert_up, Part::kExpertUp, {experts.intermediate, experts.intermediate}, 1,
                  experts.biased);
      add_by_columns(expert + names_.expert_down, Part::kExpertDown, experts.intermediate, 1, experts.biased);
      out_.begin_expert(-1);
    }
    if (experts.shared == 0) return;
    add_by_rows(prefix, names_.shared_up, Part::kUp, {experts.shared, experts.shared}, 1, false);
    add_by_columns(prefix + names_.shared_down, Part::kDown, experts.shared, 1, false);
    if (experts.shared_gate) add_of_layer(prefix + names_.shared_gate, Part::kSharedGate, 1, shape_.hidden);
  }

  void add_head_norm(const std::string& name, Part part, const Block& block, int64_t width) {
    ParamSpec& spec = out_.add(name + ".weight", part, kind_of(block.norm), {width});
    if (!block.attention.norm_by_head) return;
    cut_rows(spec, block.attention.head_dim, part == Part::kKeyNorm);
    spec.file_rows = width / block.attention.head_dim;
    if (names_.paired) spec.paired = block.attention.turned();
  }

  void add_norm(const std::string& name, Part part, NormKind kind) {
    out_.add(name + ".weight", part, kind_of(kind), {shape_.hidden});
    if (is_biased(kind)) out_.add(name + ".bias", part, ParamKind::kBias, {shape_.hidden});
  }

  // Adds a layer of several pieces, cut by its outputs: one parameter per piece, or one for all where it has a single
  // name.
  void add_by_rows(const std::string& prefix, const std::vector<std::string>& names, Part part,
                   const std::vector<int64_t>& rows, int64_t unit, bool bias) {
    for (const bool of_bias : {false, true}) {
      if (of_bias && !bias) continue;
      for (size_t piece = 0; piece < names.size(); ++piece) {
        const bool whole = names.size() == 1;
        int64_t count = rows[piece];
        if (whole) count = std::accumulate(rows.begin(), rows.end(), int64_t{0});
        ParamSpec& spec = add_of_layer(prefix + names[piece], part, count, of_bias ? 0 : shape_.hidden);
        cut_rows(spec, unit, !whole && part == Part::kQueryKeyValue && piece > 0);
        if (whole && rows.size() > 1) spec.dims[0].blocks = rows;
        if (part == Part::kQueryKeyValue) order_heads(spec, piece, rows.size());
      }
      if (names.size() > 1) out_.fuse(static_cast<int>(names.size()));
    }
  }

  // Says how the file orders the rows of queries, keys or values.
  void order_heads(ParamSpec& spec, size_t piece, size_t pieces) const {
    if (names_.interleaved) spec.interleaved = static_cast<int64_t>(pieces);
    if (names_.grouped) spec.grouped = group_;
    if (names_.paired && piece < 2) spec.paired = shape_.turned();
  }

  // Adds a layer that is cut by its inputs; its outputs are the stream's.
  void add_by_columns(const std::string& name, Part part, int64_t columns, int64_t unit, bool bias) {
    ParamSpec& weight = add_of_layer(name, part, shape_.hidden, columns);
    weight.dims[1].axis = "tp";
    weight.dims[1].unit = unit;
    if (bias) add_of_layer(name, part, shape_.hidden, 0);
  }

  // Adds the weight [rows, columns] of a linear layer, or its bias where `columns` is 0.
  ParamSpec& add_of_layer(const std::string& name, Part part, int64_t rows, int64_t columns) {
    const bool bias = columns == 0;
    ParamSpec& spec = bias ? out_.add(name + ".bias", part, ParamKind::kBias, {rows})
                           : out_.add(name + ".weight", part, ParamKind::kLinear, {rows, columns});
    spec.transposed_in_file = names_.transposed && !bias;
    if (part == Part::kExpertUp || part == Part::kExpertDown) stack(spec, bias);
    return spec;
  }

  // Says where one expert lies in a file that stacks the experts of a block.
  void stack(ParamSpec& spec, bool bias) const {
    const bool up = spec.part == Part::kExpertUp;
    const std::string& name = up ? names_.stacked_up : names_.stacked_down;
    if (name.empty()) return;
    spec.stacked = block_ + name + (bias ? "_bias" : "");
    spec.transposed_in_file = names_.stacked_transposed && !bias;
    if (up && names_.stacked_interleaved) spec.interleaved = 2;
  }

  // Adds a score head, or the vocabulary's head where it is not the embedding.
  void add_head() {
    if (shape_.head != Head::kLanguageModel) {
      out_.add("score.weight", Part::kScore, ParamKind::kLinear, {1, shape_.table_width()});
      return;
    }
    const int64_t chunk = vocab_chunk(shape_.vocabulary);
    if (!shape_.tied_embeddings)
      cut_rows(
          out_.add(names_.head + ".weight", Part::kHead, ParamKind::kLinear, {shape_.vocabulary, shape_.table_width()}),
          chunk);
    if (shape_.head_bias)
      cut_rows(out_.add(names_.head + ".bias", Part::kHead, ParamKind::kBias, {shape_.vocabulary}), chunk);
  }

  const ModelShape& shape_;
  const ModuleNames& names_;
  std::string block_;  // the prefix of the block that is being added
  int64_t group_ = 1;  // query heads per key-value head in that block
  Builder out_;
};

}  // namespace

int64_t ParamSpec::count() const {
  int64_t total = 1;
  for (const int64_t size : sizes) total *= size;
  return total;
}

int64_t ParamSpec::file_row(int64_t row) const {
  if (!reordered()) return row;
  const int64_t unit = dims[0].unit, place = row % unit, first = row - place;
  const int64_t beside = place < paired / 2 ? 2 * place : 2 * place - paired + 1;
  if (trailing > 0)
    return first + (place >= trailing ? place - trailing : unit - trailing + (paired > 0 ? beside : place));
  if (place < paired) return first + beside;
  if (grouped > 0) return file_head(row / unit) * unit + place;
  if (interleaved == 0) return row;
  const int64_t piece_rows = sizes[0] / interleaved;
  const int64_t piece = row / piece_rows, within = row % piece_rows;
  return (within / unit * interleaved + piece) * unit + within % unit;
}

int64_t ParamSpec::file_head(int64_t head) const {
  const int64_t of_group = grouped + 2, groups = sizes[0] / dims[0].unit / of_group, queries = groups * grouped;
  if (head < queries) return head / grouped * of_group + head % grouped;
  const int64_t piece = (head - queries) / groups;  // 0: a key, 1: a value
  return (head - queries) % groups * of_group + grouped + piece;
}

std::vector<ParamSpec> param_specs(const ModelShape& shape) { return DecoderParams(shape).all(); }

std::span<const ParamSpec> fused_layer(std::span<const ParamSpec> specs, int64_t first) {
  const auto begin = static_cast<size_t>(first);
  return specs.subspan(begin, static_cast<size_t>(specs[begin].fused));
}

int64_t fused_rows(std::span<const ParamSpec> specs, int64_t first) {
  int64_t rows = 0;
  for (const ParamSpec& spec : fused_layer(specs, first)) rows += spec.sizes[0];
  return rows;
}

bool is_linear(const ModelShape& shape, const ParamSpec& spec) {
  const bool tied_head = spec.part == Part::kEmbedding && shape.tied_embeddings && shape.head == Head::kLanguageModel;
  return tied_head || spec.kind == ParamKind::kLinear;
}

std::vector<int64_t> segment_floats(const std::vector<ParamSpec>& specs) {
  std::vector<int64_t> floats;
  for (const ParamSpec& spec : specs) {
    floats.resize(std::max<size_t>(floats.size(), static_cast<size_t>(spec.segment) + 1));
    base::at(floats, spec.segment) = padded(spec.offset + spec.count());
  }
  return floats;
}

}  // namespace collimate::shape
