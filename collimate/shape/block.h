#pragma once

#include <cstdint>

namespace collimate::shape {

// A block is described as data: one decoder (model/decoder.h) runs all of them, and parameters, FLOPs and the planner's
// outline follow from it. Among the norms, kRms, kLayer and kLayerUnbiased multiply by weights, kRmsOffset and
// kLayerOffset by 1 + weights; the three kLayer kinds subtract the mean, and kLayer and kLayerOffset add biases.
enum class NormKind { kRms, kRmsOffset, kLayer, kLayerUnbiased, kLayerOffset };
enum class Activation { kSilu, kGeluTanh, kGelu, kRelu, kReluSquared, kBoundedSwish };

inline bool is_centred(NormKind kind) { return kind != NormKind::kRms && kind != NormKind::kRmsOffset; }
inline bool is_offset(NormKind kind) { return kind == NormKind::kRmsOffset || kind == NormKind::kLayerOffset; }
inline bool is_biased(NormKind kind) { return kind == NormKind::kLayer || kind == NormKind::kLayerOffset; }

// NormPlace says where a half (attention or MLP, f) has its norms: x + f(norm(x)), norm(x + f(x)), x + norm(f(x)), or x
// + other norm(f(norm(x))).
enum class NormPlace { kBefore, kAfter, kBehind, kAround };
// Return whether a half reads the stream through a norm, and whether what it adds to the stream goes through one.
inline bool has_norm_ahead(NormPlace place) { return place == NormPlace::kBefore || place == NormPlace::kAround; }
inline bool has_norm_behind(NormPlace place) { return place == NormPlace::kBehind || place == NormPlace::kAround; }

// Latent describes multi-head latent attention (DeepSeek-AI 2024): a token's keys and values are made from one vector
// of kv_rank numbers and a rotated key of rope_dim channels that all heads share. kv_rank is 0 for plain attention.
struct Latent {
  int64_t q_rank = 0;  // 0: queries are not compressed
  int64_t kv_rank = 0;
  int64_t rope_dim = 0;
  int64_t value_dim = 0;
  bool cached = false;  // generation keeps vector and shared key instead of keys and values, which each step makes
  bool operator==(const Latent&) const = default;
};

// Attention is softmax attention in which heads / kv_heads query heads read the keys and values of one kv head. In
// latent attention every head has its own keys and values, and the first `rotary_dim` channels of a key are those that
// heads share.
struct Attention {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  bool rotary = true;      // queries and keys are rotated by their positions
  bool alibi = false;      // scores fall with the distance of keys, by a slope for each head
  int64_t rotary_dim = 0;  // leading channels of a head that are rotated; 0: all
  bool paired = false;     // in files the two channels that rotate together are neighbours
  bool bias = false;       // queries, keys and values have biases
  bool output_bias = false;
  bool head_norm = false;         // an RMS norm of each head of queries and keys, ahead of their rotation
  bool norm_behind_turn = false;  // these norms are behind the rotation instead
  bool norm_of_all = false;       // they are over all heads of a query together, and over all of a key
  bool norm_by_head = false;      // they have weights for each head, and are of the block's kind
  bool sinks = false;             // a learned score of each head counts in the sum of its softmax, but has no value
  double scale = 0;               // factor of scores; 0: 1 / sqrt(head_dim)
  double softcap = 0;             // a scaled score s becomes softcap tanh(s / softcap); 0: scores stay as they are
  double rope_theta = 0;          // base of this layer's own rotation, which is not scaled; 0: the model's rope holds
  int64_t window = 0;             // a token reads at most so many keys, its own and those just before it; 0: all
  Latent latent = {};
  int64_t all_heads = 0;   // heads of the model, where `heads` is one rank's share (shape::local_shape); 0: `heads`
  int64_t first_head = 0;  // the number of this rank's first head among all_heads

  int64_t turned() const { return !rotary ? 0 : rotary_dim > 0 ? rotary_dim : head_dim; }
  int64_t query_width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }  // width of keys
  int64_t value_dim() const { return latent.kv_rank > 0 ? latent.value_dim : head_dim; }
  int64_t value_width() const { return kv_heads * value_dim(); }
  int64_t output_width() const { return heads * value_dim(); }
  // Return the number of weights in the norms of queries and of keys.
  int64_t query_norm_width() const { return norm_of_all || norm_by_head ? query_width() : head_dim; }
  int64_t key_norm_width() const { return norm_of_all || norm_by_head ? kv_width() : head_dim; }
  bool operator==(const Attention&) const = default;
};

// Experts are routed experts in place of a block's MLP, each a gated MLP of its own; count is 0 for a dense block. A
// linear layer scores the experts for each token. The token passes through the `per_token` best, whose results are
// summed with weights made from their scores.
struct Experts {
  int64_t count = 0;
  int64_t per_token = 0;
  int64_t intermediate = 0;   // inner width of one expert
  int64_t shared = 0;         // inner width of the experts that every token passes
  bool shared_gate = false;   // the sigmoid of one more linear layer scales the result of the shared ones
  bool sigmoid = false;       // a score is the sigmoid of its own logit; else scores are a softmax
  bool corrected = false;     // a bias of each expert is added to its score, for the choice only
  bool router_bias = false;   // the linear layer that scores has biases
  bool biased = false;        // both layers of each expert have biases
  bool normalized = false;    // weights of the chosen experts are divided by their sum
  int64_t groups = 1;         // groups of neighbouring experts; only those with the highest two scores together count
  bool group_best = false;    // groups are compared by their highest score instead
  int64_t chosen_groups = 1;  // number of groups that count
  double scale = 1;           // factor of the weights
  double balance = 0;         // weight of the loss that spreads tokens over experts, where training names no other
  int64_t own = 0;            // number of experts that a rank has (shape::local_shape); 0: all
  int64_t first = 0;          // the number of the first of these

  int64_t held() const { return own > 0 ? own : count; }
  bool operator==(const Experts&) const = default;
};

// An Mlp is down(activation(up x)), or with a gate down(activation(gate x) * up x). kBoundedSwish (gpt-oss: OpenAI
// 2025) is gate sigmoid(slope gate), where the gate is at most `bound`, up is clamped to [-bound, bound], and 1 is
// added to up.
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

// A Block is y = x + attention(norm(x)) followed by y + mlp(norm(y)), or in parallel x + attention(norm(x)) + mlp(other
// norm(x)). `place` may put the norms elsewhere where the halves are not parallel.
struct Block {
  NormPlace place = NormPlace::kBefore;
  bool parallel = false;
  bool shared_norm = false;  // parallel halves read the stream through one norm
  NormKind norm = NormKind::kRms;
  float norm_epsilon = 1e-5F;
  double added_scale = 1;  // factor of what each half adds to the stream
  Attention attention = {};
  Mlp mlp = {};
  bool operator==(const Block&) const = default;
};

}  // namespace collimate::shape
