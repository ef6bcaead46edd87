#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collimate/model/context_cut.h"
#include "collimate/model/kv_cache.h"
#include "collimate/model/weights.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/ops/top_k.h"

namespace collimate::model {

// The experts that a mixture's routers choose for T tokens, by router [T, routers, K], ascending; -1 for a token of
// which none are known.
using RoutedExperts = std::vector<int16_t>;
int64_t routed_width(const shape::ModelShape& shape);  // routers times K; 0 of a model without experts

// How often routers were compared with a recorded choice for a token, and chose others.
struct RouterAgreement {
  int64_t compared = 0;  // tokens times routers, a recomputed one again
  int64_t differing = 0;
};

// The tokens of one forward, packed without padding. T tokens of S sequences ("documents" in training, running requests
// in generation). A sequence's tokens are adjacent and their positions ascend by one. In training and scoring a
// sequence may begin at any position, as one with padding ahead of it does, and may continue an earlier one, as the
// samples of a prompt do: its positions go on where that one's end.
struct TokenBatch {
  std::vector<int32_t> ids;        // [T]
  std::vector<int32_t> positions;  // [T] position of each token in its sequence
  std::vector<int32_t> starts;     // [S + 1] where each sequence's tokens begin in this batch
  // [S] or empty: the whole sequence that each one continues, ahead of it with nothing but its continuations between;
  // -1 for a whole sequence.
  std::vector<int32_t> continued;
  // [T] or empty: each token counts so often in the load of a mixture's routers, which training then measures.
  std::vector<float> counts;
  // [T], or empty outside of training: a key of each token, by which adapters' inputs are dropped. Equal keys drop
  // alike.
  std::vector<uint64_t> noise;
  // Or empty: what a mixture's routers chose for these tokens in generation. In training and scoring they are compared,
  // and where they are replayed they take the place of the routers' own choice, with weights by the routers' scores
  // (rollout routing replay: Ma et al. 2025, arXiv 2510.11370).
  RoutedExperts experts;
  bool replayed = false;
  RouterAgreement* agreement = nullptr;  // what is compared is added here, by the backward too; null: nowhere
  // Context ranks compute the batch together, in training and scoring: hidden states are then those of this rank's
  // tokens alone, T of the cut's own. Null: one rank does.
  std::shared_ptr<const ContextCut> cut = nullptr;
};

// A training forward keeps this for its backward. It must not outlive its Model.
class ForwardRecord {
 public:
  ForwardRecord();
  ~ForwardRecord();
  struct Impl;
  std::unique_ptr<Impl> impl;
};

struct LogProbRequest {
  at::Tensor hidden;             // [M, H]
  std::vector<int32_t> targets;  // [M]
  float temperature = 1.0F;
  bool entropy = false;
  bool record = false;    // a backward follows: keep what saves it work
  int64_t top_count = 0;  // most likely tokens of each row, at most tensor::kMostTopTokens and the vocabulary
  // The log-probs of so many more tokens of each row, and that of all others together: of `listed_ids` [M,
  // listed_count], ascending in each row, or where there are none of the most likely ones, at most the vocabulary's.
  int64_t listed_count = 0;
  std::vector<int32_t> listed_ids = {};
};

constexpr int64_t kMostRecordedLogitBytes = int64_t{256} << 20;

// Keeps what the backward of log-probs would compute again. A record must not outlive its Model.
struct LogProbRecord {
  at::Tensor normalizers;  // [2, M] max and log sum of each row
  at::Tensor entropy;      // [M] or undefined
  // [M, V], where they fit kMostRecordedLogitBytes; null else. The memory is used again once no record holds it.
  std::shared_ptr<const tensor::Buffer> logits;
  at::Tensor listed_ids;  // [M, listed_count] int32, and the next, or undefined
  at::Tensor rest;        // [M]
};

struct LogProbResult {
  at::Tensor log_probs;                   // [M]
  at::Tensor entropy;                     // [M] or undefined
  at::Tensor argmax;                      // [M] int32
  std::vector<tensor::TokenLogProb> top;  // [M, top_count] in order of log-prob, of equal ones the lower id
  at::Tensor listed_ids;  // [M, listed_count] int32, as the next two undefined where none were asked for
  at::Tensor listed;      // [M, listed_count]
  at::Tensor rest;        // [M] log-prob of all others, tensor::kLeastRest at least
  LogProbRecord record;   // empty unless asked for
};

// dL/d of each; undefined where the loss does not read it. The listed tokens' come with the rest's.
struct LogProbGradients {
  at::Tensor log_probs;  // [M]
  at::Tensor entropy;    // [M]
  at::Tensor listed;     // [M, listed_count]
  at::Tensor rest;       // [M]
};

// A training forward keeps all, or not what attention and activations give, which is large and cheap to make again, or
// each segment's input alone.
enum class Recompute { kNone, kSelective, kFull };

// A decoder over one Weights. One set of kernels serves training, scoring and generation, so that a row's bits depend
// on that row's inputs alone. Of several pipeline stages every one calls the same forwards; in generation and scoring
// they send each other the residual stream, and all but the last return hidden states of zeros. Ranks that share
// experts (ExpertRanks) or the weights (Weights::hold) call as many forwards and backwards each, of any number of
// tokens, 0 too. Not thread-safe; blocking. Throws GuardError when a packed panel is older than the weights.
class Model {
 public:
  Model(std::shared_ptr<Weights> weights, tensor::Exec exec);
  ~Model();

  const shape::ModelShape& shape() const;
  Weights& weights();
  const tensor::Exec& exec() const;
  // Gives back the memory that passes keep for the next one. No record of a forward is there.
  void release();

  // Generation: appends the tokens' keys and values to `cache` through `tables` (block ids of each of the S sequences,
  // which must cover the positions) and returns the final hidden states after the last norm [T, H]. No gradients.
  // `listed`: becomes what a mixture's routers chose; null where nobody asks.
  at::Tensor forward_cached(const TokenBatch& tokens, KvCache& cache, std::span<const std::vector<int32_t>> tables,
                            RoutedExperts* listed = nullptr);

  // Ranks that share experts end a step of generation together, each with any number of cached forwards behind it:
  // this one takes part in those that others still have, without tokens. Returns whether any rank has `more` to do,
  // which is then another step of all. Blocking; at once where nothing is shared.
  bool end_step(bool more);

  // Scoring: whole sequences and continuations. Hidden states [T, H]. No gradients.
  at::Tensor forward(const TokenBatch& tokens);

  // Training: as forward, keeping what backward needs, but for what `recompute` says. Of
  // several stages each but the first is given the residual stream of the one before, and each but the last gives its
  // own [T, stream_width()].
  at::Tensor forward_train(const TokenBatch& tokens, Recompute recompute, std::unique_ptr<ForwardRecord>& record,
                           const at::Tensor& stream = {});
  int64_t stream_width() const;
  // Whether this stage's backward is given a gradient, and whether it gives one to the stage before.
  bool takes_gradient() const;
  bool gives_gradient() const;

  // A mixture's load in a training forward whose tokens have counts, which are the rows that stand for each: by router,
  // for each expert how often it was listed, then the sums of scores, then that of squared log sums of exponentials
  // [routers, 2 E + 1]. Empty of other forwards.
  static std::vector<float> router_load(const ForwardRecord& record);
  // Adds a loss of the load, summed over routers, to that of `hidden_gradient`: its slopes in the sums of scores [E],
  // and in that of squares.
  static void set_router_loss(ForwardRecord& record, std::span<const float> scores, float squares);

  // Adds dL/dweights to the weights' gradients. `segment_done(segment)` is called as soon as a segment's gradient is
  // complete, before the next segment's backward starts; that of adapters, which lie in all blocks, at the end. The
  // record is used up. `gradient`: that of what the forward gave. Returns that of the stream which the stage got;
  // undefined unless gives_gradient().
  at::Tensor backward(std::unique_ptr<ForwardRecord> record, const at::Tensor& gradient,
                      const std::function<void(int segment)>& segment_done = {});

  // Whoever calls a head below holds these segments meanwhile; the record of a training forward holds them until its
  // backward has passed them. Nothing where no ranks share the weights, or another stage has the head.
  std::vector<Weights::Held> hold_head();

  // The heads below are the last stage's. It alone calls `make`, which gives fp32 [sizes]; all stages return that.
  at::Tensor from_last_stage(at::IntArrayRef sizes, const std::function<at::Tensor()>& make);

  // LM head, fused with log-softmax and gather over row chunks: [M, V] is held only by a record. Throws InputError
  // without an LM head.
  LogProbResult log_probs(const LogProbRequest& request);
  // Adds the head's gradient and returns dL/dhidden [M, H], from dL/dlog_probs and what else the loss reads. `record`:
  // of log_probs() of the same request with the same weights, or, where no tokens were listed, empty.
  at::Tensor log_probs_backward(const LogProbRequest& request, const LogProbGradients& gradients,
                                const LogProbRecord& record = {});
  // Logits [M, V] for sampling, by the same kernel and order as log_probs.
  at::Tensor logits(const at::Tensor& hidden);

  // Score or value head: one number per row [M], and its backward (returns dL/dhidden [M, H]).
  at::Tensor scores(const at::Tensor& hidden);
  at::Tensor scores_backward(const at::Tensor& hidden, const at::Tensor& score_gradient);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace collimate::model
