#include "collimate/base/at.h"
#include "collimate/model/arch/architecture.h"

namespace collimate::model {
namespace {

// GPT-2 (Radford et al. 2019): learned positions, layer norm before each half, biases everywhere, MLP with GELU.
class Gpt2 final : public Architecture {
 public:
  explicit Gpt2(const Weights& weights) {
    const shape::ModelShape& shape = weights.shape();
    attention_ = {static_cast<int>(shape.heads), static_cast<int>(shape.kv_heads), static_cast<int>(shape.head_dim)};
    embedding_ = weights.index_of("transformer.wte.weight");
    positions_ = weights.index_of("transformer.wpe.weight");
    final_norm_ = find_norm(weights, "transformer.ln_f", shape.norm_epsilon);
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
      const std::string prefix = "transformer.h." + std::to_string(layer) + ".";
      blocks_.push_back({find_norm(weights, prefix + "ln_1", shape.norm_epsilon),
                         find_linear(weights, prefix + "attn.c_attn"), find_linear(weights, prefix + "attn.c_proj"),
                         find_norm(weights, prefix + "ln_2", shape.norm_epsilon),
                         find_linear(weights, prefix + "mlp.c_fc"), find_linear(weights, prefix + "mlp.c_proj")});
    }
  }

  Slot* embedding(Step& step) const override { return embed(step, embedding_, positions_); }

  Slot* block(Step& step, int layer, Slot* stream) const override {
    const Block& b = base::at(blocks_, layer);
    Slot* qkv = linear(step, b.qkv, normalize(step, b.attention_norm, stream));
    stream = add_linear(step, b.output, attend(step, attention_, qkv), stream);
    Slot* wide = linear(step, b.up, normalize(step, b.mlp_norm, stream));
    return add_linear(step, b.down, gelu(step, wide), stream);
  }

  Slot* final_norm(Step& step, Slot* stream) const override { return normalize(step, final_norm_, stream); }
  bool rotary() const override { return false; }

 private:
  struct Block {
    Norm attention_norm;
    Linear qkv, output;
    Norm mlp_norm;
    Linear up, down;
  };

  Attention attention_;
  int embedding_ = -1, positions_ = -1;
  Norm final_norm_;
  std::vector<Block> blocks_;
};

}  // namespace

std::unique_ptr<Architecture> make_gpt2(const Weights& weights) { return std::make_unique<Gpt2>(weights); }

}  // namespace collimate::model
