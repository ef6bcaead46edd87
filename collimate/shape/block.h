#pragma once

#include <cstdint>

namespace collimate::shape {

// A block as data: one decoder (model/decoder.h) runs them, and parameters, FLOPs and the planner's outline follow.
// Norms: of weights alone; of 1 and weights; and centred: of weights and biases, of weights alone, of 1 and weights and
// biases.
enum class NormKind { kRms, kRmsOffset, kLayer, kLayerUnbiased, kLayerOffset };
enum class Activation { kSilu, kGeluTanh, kGelu, kRelu, kReluSquared, kBoundedSwish };

inline bool is_centred(NormKind kind) { return kind != NormKind::kRms && kind != NormKind::kRmsOffset; }
inline bool is_offset(NormKind kind) { return kind == NormKind::kRmsOffset || kind == NormKind::kLayerOffset; }
inline bool is_biased(NormKind kind) { return kind == NormKind::kLayer || kind == NormKind::kLayerOffset; }

// Where a half has its norms: x + f(norm(x)), norm(x + f(x)), x + norm(f(x)), or x + other norm(f(norm(x))).
enum class NormPlace { kBefore, kAfter, kBehind, kAround };
// Whether a half reads the stream through a norm, and whether it adds what it makes through one.
inline bool has_norm_ahead(NormPlace place) { return place == NormPlace::kBefore || place == NormPlace::kAround; }
inline bool has_norm_behind(NormPlace place) { return place == NormPlace::kBehind || place == NormPlace::kAround; }

// Multi-head latent attention (DeepSeek-AI 2024): a token's keys and values are made of one vector of kv_rank and a
// turned key of rope_dim that all heads share; kv_rank 0 for plain attention.
struct Latent {
  int64_t q_rank = 0;  // 0: queries are not compressed
  int64_t kv_rank = 0;
  int64_t rope_dim = 0;
  int64_t value_dim = 0;
  bool cached = false;  // what generation keeps of a token, to make keys and values of at each step; else those
  bool operator==(const Latent&) const = default;
};

// Softmax attention in which heads / kv_heads query heads read the keys and values of one kv head. Of latent attention
// every head has its own, and `rotary_dim` leading channels of a key are those shared.
struct Attention {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  bool rotary = true;      // queries and keys turn by their positions
  bool alibi = false;      // scores fall with the distance of keys, by a slope of each head
  int64_t rotary_dim = 0;  // leading channels of a head that turn; 0: all
  bool paired = false;     // in files they lie beside those that they turn with
  bool bias = false;       // of queries, keys and values
  bool output_bias = false;
  bool head_norm = false;         // an RMS norm of each query's and key's head, ahead of their turn
  bool norm_behind_turn = false;  // where there is one, it is behind their turn
  bool norm_of_all = false;       // it is of all of a query's heads together, and of all of a key's
  bool norm_by_head = false;      // each head has weights of its own, and the norm is of the block's kind
  bool sinks = false;             // a learned score of each head counts in the sum of its softmax, and has no value
  double scale = 0;               // of scores; 0: 1 / sqrt(head_dim)
  double softcap = 0;             // a scaled score s becomes softcap tanh(s / softcap); 0: as it is
  double rope_theta = 0;          // of a layer that turns by a base of its own, unscaled; 0: as the model's rope says
  int64_t window = 0;             // a token reads at most so many keys, its own and those before it; 0: all
  Latent latent = {};
  int64_t all_heads = 0;   // of the model, where these are but one rank's (shape::local_shape); 0: these
  int64_t first_head = 0;  // the number of this rank's first head among them

  int64_t turned() const { return !rotary ? 0 : rotary_dim > 0 ? rotary_dim : head_dim; }
  int64_t query_width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }  // of keys
  int64_t value_dim() const { return latent.kv_rank > 0 ? latent.value_dim : head_dim; }
  int64_t value_width() const { return kv_heads * value_dim(); }
  int64_t output_width() const { return heads * value_dim(); }
  // Weights of the norms of queries and of keys.
  int64_t query_norm_width() const { return norm_of_all || norm_by_head ? query_width() : head_dim; }
  int64_t key_norm_width() const { return norm_of_all || norm_by_head ? kv_width() : head_dim; }
  bool operator==(const Attention&) const = default;
};

// Routed experts in place of the MLP, each a gated one of its own; count 0 for a dense block. A linear layer scores
// them for a token, which passes the `per_token` best and sums what they give, by weights of their scores.
struct Experts {
  int64_t count = 0;
  int64_t per_token = 0;
  int64_t intermediate = 0;   // of one expert
  int64_t shared = 0;         // intermediate of what every token passes
  bool shared_gate = false;   // the sigmoid of one more linear layer scales what the shared ones give
  bool sigmoid = false;       // a score is the sigmoid of its own number; else all are a softmax
  bool corrected = false;     // a bias for each expert is added to scores for the choice alone
  bool router_bias = false;   // of the linear layer that scores them
  bool biased = false;        // both layers of each of them have biases
  bool normalized = false;    // the weights of those chosen are divided by their sum
  int64_t groups = 1;         // of neighbours; those with the highest two scores together are looked at
  bool group_best = false;    // with the highest one instead
  int64_t chosen_groups = 1;  // so many of them
  double scale = 1;           // of weights
  double balance = 0;         // of the loss that spreads tokens over experts, where training names no other weight
  int64_t own = 0;            // of them, where a rank has some (shape::local_shape); 0: all
  int64_t first = 0;          // the number of the first of its own

  int64_t held() const { return own > 0 ? own : count; }
  bool operator==(const Experts&) const = default;
};

// down(activation(up x)), or gated: down(activation(gate x) * up x). Swish has a slope, gate sigmoid(slope gate), and
// where it is bounded (gpt-oss: OpenAI 2025) the gate is at most `bound`, up within it both ways, and 1 is added to up.
struct Mlp {
  int64_t intermediate = 0;
  bool gated = true;
  Activation activation = Activation::kSilu;
  bool bias = false;
  double slope = 1, bound = 0;  // of kBoundedSwish
  Experts experts = {};

  int64_t up_width() const { return (gated ? 2 : 1) * intermediate; }
  bool operator==(const Mlp&) const = default;
};

// x + attention(norm(x)) = y, and y + mlp(norm(y)), or in parallel: x + attention(norm(x)) + mlp(other norm(x)); one
// half behind the other may have its norm at another place.
struct Block {
  NormPlace place = NormPlace::kBefore;
  bool parallel = false;
  bool shared_norm = false;  // of parallel halves: one norm for both
  NormKind norm = NormKind::kRms;
  float norm_epsilon = 1e-5F;
  double added_scale = 1;  // of what each half adds to the stream
  Attention attention = {};
  Mlp mlp = {};
  bool operator==(const Block&) const = default;
};

}  // namespace collimate::shape
