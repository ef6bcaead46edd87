#include "collimate/base/at.h"
#include "collimate/model/arch/architecture.h"

namespace collimate::model {
namespace {

// Llama (Touvron et al. 2023) and what differs from it by biases only: RMS norm before each half, rotary positions,
// grouped queries, gated MLP.
class Llama final : public Architecture {
 public:
  explicit Llama(const Weights& weights) {
    const shape::ModelShape& shape = weights.shape();
    attention_ = {static_cast<int>(shape.heads), static_cast<int>(shape.kv_heads), static_cast<int>(shape.head_dim)};
    embedding_ = weights.index_of("model.embed_tokens.weight");
    final_norm_ = find_norm(weights, "model.norm", shape.norm_epsilon);
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      blocks_.push_back(
          {find_norm(weights, prefix + "input_layernorm", shape.norm_epsilon),
           find_linear(weights, prefix + "self_attn.q_proj"), find_linear(weights, prefix + "self_attn.o_proj"),
           find_norm(weights, prefix + "post_attention_layernorm", shape.norm_epsilon),
           find_linear(weights, prefix + "mlp.gate_proj"), find_linear(weights, prefix + "mlp.down_proj")});
    }
  }

  Slot* embedding(Step& step) const override { return embed(step, embedding_); }

  Slot* block(Step& step, int layer, Slot* stream) const override {
    const Block& b = base::at(blocks_, layer);
    Slot* qkv = linear(step, b.qkv, normalize(step, b.attention_norm, stream));
    stream = add_linear(step, b.output, attend(step, attention_, qkv), stream);
    Slot* gate_up = linear(step, b.gate_up, normalize(step, b.mlp_norm, stream));
    return add_linear(step, b.down, silu_mul(step, gate_up), stream);
  }

  Slot* final_norm(Step& step, Slot* stream) const override { return normalize(step, final_norm_, stream); }
  bool rotary() const override { return true; }

 private:
  struct Block {
    Norm attention_norm;
    Linear qkv, output;
    Norm mlp_norm;
    Linear gate_up, down;
  };

  Attention attention_;
  int embedding_ = -1;
  Norm final_norm_;
  std::vector<Block> blocks_;
};

}  // namespace

std::unique_ptr<Architecture> make_llama(const Weights& weights) { return std::make_unique<Llama>(weights); }

}  // namespace collimate::model
