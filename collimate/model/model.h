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

// Holds the K experts that each router of a mixture chose for T tokens [T, routers, K], ascending; -1 for a token whose
// experts are not known.
using RoutedExperts = std::vector<int16_t>;
int64_t routed_width(const shape::ModelShape& shape);  // routers times K; 0 of a model without experts

// Counts how often a router's choice for a token was compared with a recorded one, and how often it was another.
struct RouterAgreement {
  int64_t compared = 0;  // tokens times routers; a recomputed router is counted again
  int64_t differing = 0;
};

// Holds the tokens of one forward, packed without padding: T tokens of S sequences ("documents" in training, running
// requests in generation). A sequence's tokens are adjacent and their positions ascend by one. In training and scoring
// a sequence may begin at any position, as one with padding ahead of it does. It may also continue an earlier sequence,
// as the samples of a prompt do: its positions then go on where those of the earlier one end.
struct TokenBatch {
  std::vector<int32_t> ids;        // [T]
  std::vector<int32_t> positions;  // [T] position of each token in its sequence
  std::vector<int32_t> starts;     // [S + 1] where each sequence's tokens begin in this batch
  // [S] or empty: the number of the whole sequence that each one continues; -1 for a whole sequence. The whole sequence
  // lies ahead of its continuations, with nothing else between them.
  std::vector<int32_t> continued;
  // [T] or empty: how often each token counts in the load of a mixture's routers. Training measures the load if set.
  std::vector<float> counts;
  // [T] in training with dropout, else empty: each token's key for dropping adapters' inputs. Equal keys drop alike.
  std::vector<uint64_t> noise;
  // The experts that a mixture's routers chose for these tokens in generation, or empty. Training and scoring compare
  // the routers' own choices with them. If `replayed`, they take the place of the routers' own choices, with weights by
  // the routers' scores (rollout routing replay: Ma et al. 2025, arXiv 2510.11370).
  RoutedExperts experts;
  bool replayed = false;
  RouterAgreement* agreement = nullptr;  // comparisons are added here, those in the backward too; null: nowhere
  // Says how context ranks compute the batch together, in training and scoring: hidden states are then those of this
  // rank's own_rows() tokens alone. Null: one rank computes it.
  std::shared_ptr<const ContextCut> cut = nullptr;
};

// Holds what a training forward keeps for its backward. A record must not outlive its Model.
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
  bool record = false;  // a backward follows: keep what saves it work
  // Asks for the most likely tokens of each row: how many, at most tensor::kMostTopTokens and the vocabulary's size. It
  // must be 0 where each tensor rank has a part of the vocabulary.
  int64_t top_count = 0;
  // Asks for the log-probs of listed_count more tokens of each row, and for the log-prob of all other tokens together.
  // The tokens are `listed_ids` [M, listed_count], ascending in each row; if there are no ids, the most likely tokens.
  // listed_count is at most the size of the vocabulary.
  int64_t listed_count = 0;
  std::vector<int32_t> listed_ids = {};
};

constexpr int64_t kMostRecordedLogitBytes = int64_t{256} << 20;

// Keeps what the backward of log-probs would otherwise compute again. A record must not outlive its Model.
struct LogProbRecord {
  at::Tensor normalizers;  // [2, M] max and log sum of each row
  at::Tensor entropy;      // [M] or undefined
  // [M, V], or [M, this rank's part of V]; null where they exceed kMostRecordedLogitBytes. The memory is used again
  // once no record holds it.
  std::shared_ptr<const tensor::Buffer> logits;
  at::Tensor listed_ids;  // [M, listed_count] int32; undefined, as rest is, if no tokens were listed
  at::Tensor rest;        // [M]
};

struct LogProbResult {
  at::Tensor log_probs;                   // [M]
  at::Tensor entropy;                     // [M] or undefined
  at::Tensor argmax;                      // [M] int32
  std::vector<tensor::TokenLogProb> top;  // [M, top_count] the most likely first, of equal ones the lower id
  at::Tensor listed_ids;  // [M, listed_count] int32; undefined, as the next two are, where none were asked for
  at::Tensor listed;      // [M, listed_count] log-probs of these tokens
  at::Tensor rest;        // [M] log-prob of all other tokens together, at least tensor::kLeastRest
  LogProbRecord record;   // empty unless asked for, or the vocabulary is divided among tensor ranks
};

// Holds dL/d of each output, undefined where the loss does not read it; `listed` and `rest` only together.
struct LogProbGradients {
  at::Tensor log_probs;  // [M]
  at::Tensor entropy;    // [M]
  at::Tensor listed;     // [M, listed_count]
  at::Tensor rest;       // [M]
};

// A training forward keeps everything (kNone), or everything except the outputs of attention and of activations, which
// are large and cheap to make again (kSelective), or each segment's input alone (kFull).
enum class Recompute { kNone, kSelective, kFull };

// A Model runs a decoder over one Weights. One set of kernels serves training, scoring and generation, so that a row's
// bits depend on that row's inputs alone. All pipeline stages call the same forwards; in generation and scoring they
// send each other the residual stream, and all but the last return hidden states of zeros. Ranks that share experts
// (ExpertRanks) or the weights (Weights::hold) all call equally many forwards and backwards, each of any number of
// tokens, also 0. Not thread-safe; calls block. Throws GuardError when a packed panel is older than the weights.
class Model {
 public:
  Model(std::shared_ptr<Weights> weights, tensor::Exec exec);
  ~Model();

  const shape::ModelShape& shape() const;
  Weights& weights();
  const tensor::Exec& exec() const;
  // Gives back the memory that passes keep for the next one. There must be no record of a forward.
  void release();

  // Runs a forward of generation: appends the tokens' keys and values to `cache` through `tables` (block ids of each of
  // the S sequences, which must cover the positions) and returns the final hidden states after the last norm [T, H]. No
  // gradients. Unless null, `listed` receives the experts that a mixture's routers chose.
  at::Tensor forward_cached(const TokenBatch& tokens, KvCache& cache, std::span<const std::vector<int32_t>> tables,
                            RoutedExperts* listed = nullptr);

  // Ends a step of generation that ranks which share experts make together, each with any number of cached forwards.
  // This rank takes part, without tokens, in the forwards that other ranks still make. Returns whether any rank has
  // `more` to do, so that all make another step. Blocks; returns `more` at once where nothing is shared.
  bool end_step(bool more);

  // Runs a forward of scoring over whole sequences and continuations. Returns hidden states [T, H]. No gradients.
  at::Tensor forward(const TokenBatch& tokens);

  // Runs one of the rank's runs of forward(), without exchanges between stages. Each pipeline stage but the first is
  // given the residual `stream` of the one before, and each but the last returns its own [T, stream_width()].
  at::Tensor forward_run(const TokenBatch& tokens, int run, const at::Tensor& stream);
  // Returns whether that run is the last stage, which returns hidden states.
  bool ends(int run) const;

  // Runs a forward of training: as forward_run(), and keeps what backward needs in `record`, except what `recompute`
  // leaves out.
  at::Tensor forward_train(const TokenBatch& tokens, Recompute recompute, std::unique_ptr<ForwardRecord>& record,
                           const at::Tensor& stream = {}, int run = 0);
  int64_t stream_width() const;
  // These return whether that run's backward is given a gradient, and whether it gives one to the stage before.
  bool takes_gradient(int run = 0) const;
  bool gives_gradient(int run = 0) const;

  // Returns the load of a mixture's routers in a training forward whose tokens have counts [routers, 2 E + 1]: for each
  // router, how often it chose each expert, then each expert's sum of scores, then the sum of squared log sums of
  // exponentials. Each token counts as often as its count says. Empty for other forwards.
  static std::vector<float> router_load(const ForwardRecord& record);
  // Has the backward add the gradient of a loss of that load, summed over routers, given by its slopes in the sums of
  // scores [E] and in the sum of squares.
  static void set_router_loss(ForwardRecord& record, std::span<const float> scores, float squares);

  // Adds dL/dweights to the weights' gradients. Calls `segment_done(segment)` as soon as a segment's gradient is
  // complete, before the next segment's backward starts; for the adapters, which lie in all blocks, at the end. The
  // record is used up. `gradient` is that of what the forward returned. Returns the gradient of the stream that the
  // stage was given; undefined unless gives_gradient().
  at::Tensor backward(std::unique_ptr<ForwardRecord> record, const at::Tensor& gradient,
                      const std::function<void(int segment)>& segment_done = {});

  // Holds the head's segments: whoever calls a head below keeps them held meanwhile, and the record of a training
  // forward holds them until its backward has passed them. Holds nothing where no ranks share the weights, or another
  // stage has the head.
  std::vector<Weights::Held> hold_head();

  // Returns on all stages what `make`, fp32 [sizes], returns on the last stage, which alone calls it. Only the last
  // stage has the heads below.
  at::Tensor from_last_stage(at::IntArrayRef sizes, const std::function<at::Tensor()>& make);

  // Runs the LM head, fused with log-softmax and gather over chunks of rows: only a record holds [M, V] logits. Throws
  // InputError without an LM head.
  LogProbResult log_probs(const LogProbRequest& request);
  // Adds the head's gradient to the weights' and returns dL/dhidden [M, H], from dL/dlog_probs and those of what else
  // the loss reads. `record` is that of log_probs() of the same request with the same weights; it may be empty where no
  // tokens were listed.
  at::Tensor log_probs_backward(const LogProbRequest& request, const LogProbGradients& gradients,
                                const LogProbRecord& record = {});
  // Returns logits [M, V] for sampling, by the same kernel and order as log_probs.
  at::Tensor logits(const at::Tensor& hidden);

  // scores() runs the score or value head: one number per row [M]. scores_backward() returns dL/dhidden [M, H].
  at::Tensor scores(const at::Tensor& hidden);
  at::Tensor scores_backward(const at::Tensor& hidden, const at::Tensor& score_gradient);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace collimate::model
