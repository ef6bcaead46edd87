#include "collimate/shape/param_spec.h"

#include <algorithm>

namespace collimate::shape {
namespace {

constexpr int64_t kAlignFloats = 16;

int64_t padded(int64_t count) { return (count + kAlignFloats - 1) / kAlignFloats * kAlignFloats; }

// Collects the parameters of one model and gives each its offset.
class Builder {
 public:
  void begin_segment(int segment) {
    segment_ = segment;
    next_ = 0;
  }

  ParamSpec& add(const std::string& name, ParamKind kind, std::vector<int64_t> sizes) {
    ParamSpec spec;
    spec.name = name;
    spec.kind = kind;
    spec.dims.resize(sizes.size());
    spec.sizes = std::move(sizes);
    spec.segment = segment_;
    spec.decay = kind == ParamKind::kEmbedding || kind == ParamKind::kLinear;
    spec.offset = next_ = padded(next_);
    next_ += spec.count();
    specs_.push_back(std::move(spec));
    return specs_.back();
  }

  // The last `members` parameters run as one linear: they move together without gaps.
  void fuse(int members) {
    const size_t first = specs_.size() - static_cast<size_t>(members);
    next_ = specs_[first].offset;
    for (size_t i = first; i < specs_.size(); ++i) {
      specs_[i].offset = next_;
      specs_[i].fused = i == first ? members : 0;
      next_ += specs_[i].count();
    }
  }

  ParamSpec& last(size_t back) { return specs_[specs_.size() - 1 - back]; }

  std::vector<ParamSpec> take() { return std::move(specs_); }

 private:
  std::vector<ParamSpec> specs_;
  int segment_ = 0;
  int64_t next_ = 0;
};

// Split by rows (outputs) over "tp" in whole units, or by columns (inputs).
void split_rows(ParamSpec& spec, int64_t unit, bool replicate = false) {
  spec.dims[0].axis = "tp";
  spec.dims[0].unit = unit;
  spec.dims[0].replicate = replicate;
}
void split_columns(ParamSpec& spec, int64_t unit) {
  spec.dims[1].axis = "tp";
  spec.dims[1].unit = unit;
}

void add_head(Builder& out, const ModelShape& shape) {
  if (shape.head != Head::kLanguageModel) {
    out.add("score.weight", ParamKind::kLinear, {1, shape.hidden});
  } else if (!shape.tied_embeddings) {
    split_rows(out.add("lm_head.weight", ParamKind::kLinear, {shape.vocabulary, shape.hidden}), 1);
  }
}

void add_llama_attention(Builder& out, const ModelShape& shape, const std::string& prefix) {
  const int64_t q_rows = shape.heads * shape.head_dim, kv_rows = shape.kv_heads * shape.head_dim;
  split_rows(out.add(prefix + "q_proj.weight", ParamKind::kLinear, {q_rows, shape.hidden}), shape.head_dim);
  split_rows(out.add(prefix + "k_proj.weight", ParamKind::kLinear, {kv_rows, shape.hidden}), shape.head_dim, true);
  split_rows(out.add(prefix + "v_proj.weight", ParamKind::kLinear, {kv_rows, shape.hidden}), shape.head_dim, true);
  out.fuse(3);
  if (shape.attention_bias) {
    split_rows(out.add(prefix + "q_proj.bias", ParamKind::kBias, {q_rows}), shape.head_dim);
    split_rows(out.add(prefix + "k_proj.bias", ParamKind::kBias, {kv_rows}), shape.head_dim, true);
    split_rows(out.add(prefix + "v_proj.bias", ParamKind::kBias, {kv_rows}), shape.head_dim, true);
    out.fuse(3);
  }
  split_columns(out.add(prefix + "o_proj.weight", ParamKind::kLinear, {shape.hidden, q_rows}), shape.head_dim);
  if (shape.output_bias) out.add(prefix + "o_proj.bias", ParamKind::kBias, {shape.hidden});
}

void add_llama_mlp(Builder& out, const ModelShape& shape, const std::string& prefix) {
  split_rows(out.add(prefix + "gate_proj.weight", ParamKind::kLinear, {shape.intermediate, shape.hidden}), 1);
  split_rows(out.add(prefix + "up_proj.weight", ParamKind::kLinear, {shape.intermediate, shape.hidden}), 1);
  out.fuse(2);
  if (shape.mlp_bias) {
    split_rows(out.add(prefix + "gate_proj.bias", ParamKind::kBias, {shape.intermediate}), 1);
    split_rows(out.add(prefix + "up_proj.bias", ParamKind::kBias, {shape.intermediate}), 1);
    out.fuse(2);
  }
  split_columns(out.add(prefix + "down_proj.weight", ParamKind::kLinear, {shape.hidden, shape.intermediate}), 1);
  if (shape.mlp_bias) out.add(prefix + "down_proj.bias", ParamKind::kBias, {shape.hidden});
}

std::vector<ParamSpec> llama_specs(const ModelShape& shape) {
  Builder out;
  out.begin_segment(0);
  split_rows(out.add("model.embed_tokens.weight", ParamKind::kEmbedding, {shape.vocabulary, shape.hidden}), 1);
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    out.begin_segment(static_cast<int>(layer) + 1);
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    out.add(prefix + "input_layernorm.weight", ParamKind::kNorm, {shape.hidden});
    add_llama_attention(out, shape, prefix + "self_attn.");
    out.add(prefix + "post_attention_layernorm.weight", ParamKind::kNorm, {shape.hidden});
    add_llama_mlp(out, shape, prefix + "mlp.");
  }
  out.begin_segment(static_cast<int>(shape.layers) + 1);
  out.add("model.norm.weight", ParamKind::kNorm, {shape.hidden});
  add_head(out, shape);
  return out.take();
}

void add_gpt2_norm(Builder& out, const ModelShape& shape, const std::string& prefix) {
  out.add(prefix + ".weight", ParamKind::kNorm, {shape.hidden});
  out.add(prefix + ".bias", ParamKind::kBias, {shape.hidden});
}

// A Conv1D of the file: [in, out] there, [out, in] here.
void add_conv1d(Builder& out, const std::string& prefix, int64_t rows, int64_t columns) {
  out.add(prefix + ".weight", ParamKind::kLinear, {rows, columns}).transposed_in_file = true;
  out.add(prefix + ".bias", ParamKind::kBias, {rows});
}

std::vector<ParamSpec> gpt2_specs(const ModelShape& shape) {
  Builder out;
  out.begin_segment(0);
  split_rows(out.add("transformer.wte.weight", ParamKind::kEmbedding, {shape.vocabulary, shape.hidden}), 1);
  out.add("transformer.wpe.weight", ParamKind::kEmbedding, {shape.max_positions, shape.hidden});
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    out.begin_segment(static_cast<int>(layer) + 1);
    const std::string prefix = "transformer.h." + std::to_string(layer) + ".";
    add_gpt2_norm(out, shape, prefix + "ln_1");
    add_conv1d(out, prefix + "attn.c_attn", 3 * shape.hidden, shape.hidden);
    for (ParamSpec* spec : {&out.last(1), &out.last(0)}) {
      split_rows(*spec, shape.head_dim);
      spec->dims[0].blocks = {shape.hidden, shape.hidden, shape.hidden};
    }
    add_conv1d(out, prefix + "attn.c_proj", shape.hidden, shape.hidden);
    split_columns(out.last(1), shape.head_dim);
    add_gpt2_norm(out, shape, prefix + "ln_2");
    add_conv1d(out, prefix + "mlp.c_fc", shape.intermediate, shape.hidden);
    split_rows(out.last(1), 1);
    split_rows(out.last(0), 1);
    add_conv1d(out, prefix + "mlp.c_proj", shape.hidden, shape.intermediate);
    split_columns(out.last(1), 1);
  }
  out.begin_segment(static_cast<int>(shape.layers) + 1);
  add_gpt2_norm(out, shape, "transformer.ln_f");
  add_head(out, shape);
  return out.take();
}

}  // namespace

int64_t ParamSpec::count() const {
  int64_t total = 1;
  for (const int64_t size : sizes) total *= size;
  return total;
}

std::vector<ParamSpec> param_specs(const ModelShape& shape) {
  return shape.family == "gpt2" ? gpt2_specs(shape) : llama_specs(shape);
}

std::vector<int64_t> segment_floats(const std::vector<ParamSpec>& specs) {
  std::vector<int64_t> floats;
  for (const ParamSpec& spec : specs) {
    floats.resize(std::max<size_t>(floats.size(), static_cast<size_t>(spec.segment) + 1));
    floats[static_cast<size_t>(spec.segment)] = padded(spec.offset + spec.count());
  }
  return floats;
}

}  // namespace collimate::shape
