#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "collimate/model/model.h"
#include "collimate/shape/model_shape.h"
#include "collimate/tensor/allocator.h"

namespace collimate::model {

// This computes what a model's arrays take from its shape, before any of them exists. All sizes are as the allocator
// counts them. Legend: T tokens of one forward, packed; B blocks of KvCache::kBlockTokens that its sequences fill.

// Ranks that train a model together: the stage of ZeRO says what they share.
struct Sharing {
  int zero = 0;
  int ranks = 1;
  bool averages = false;  // with a moving average of the weights that a rank keeps
  bool away = false;      // the optimizer's numbers are off the device but for those of one segment
};
// master, gradient, optimizer (two moments) and average where trained, values where frozen, panels; without the
// segments of a base, whose weights are a model's of their own. Of the rank that takes the most. Without a sharing
// whoever trains the weights plans their gradient and optimizer. Of weights that ranks share (options.ranks.shares),
// what is gathered, and has panels, is as much as passes hold at once: the segment with the most, beside a head that is
// the embedding too, or with `whole` all of them for inference.
std::vector<tensor::MemoryItem> weights_memory(const shape::ModelShape& shape, const WeightsOptions& options,
                                               std::optional<Sharing> sharing = Sharing(), bool whole = false);

// A key-value cache of so many blocks.
int64_t kv_cache_bytes(const shape::ModelShape& shape, tensor::KvType type, int64_t blocks);

// Floats that a pass takes from each of the model's arenas: the arenas are made this large before it begins.
struct PassFloats {
  int64_t workspace = 0;    // scratch of a segment, and keys and values of whole sequences
  int64_t activations = 0;  // what a training forward keeps
  int64_t gradients = 0;    // of activations, one segment at a time
};

// Tells them by running the model's own passes on a device that only counts what they take. Where ranks share experts,
// for the most rows that these may get: those of all ranks' tokens, if each rank has as many.
class PassPlan {
 public:
  PassPlan(const shape::ModelShape& shape, const WeightsOptions& options,
           const tensor::Device& device = tensor::default_device());
  ~PassPlan();
  // Without blocks keys and values are in a cache. With several context ranks: of the one with the most of the tokens.
  PassFloats inference(int64_t tokens, int64_t blocks, int context_ranks = 1);
  // Forward and backward; of weights that are trained.
  PassFloats training(int64_t tokens, int64_t blocks, Recompute recompute, int context_ranks = 1);

 private:
  struct Counted;
  std::unique_ptr<Counted> counted_;
  std::map<std::tuple<int64_t, int64_t, int, int>, PassFloats> known_;  // by tokens, blocks, ranks and kind of pass
};

// "workspace", the hidden states [T, H] that the pass returns included, and "activations", of which `under_way` passes
// have some at once.
std::vector<tensor::MemoryItem> pass_memory(const shape::ModelShape& shape, int64_t tokens, const PassFloats& floats,
                                            int64_t under_way = 1);

// Logits that a record of `predicted` log-probs keeps on a tensor rank; 0 where it keeps none.
int64_t recorded_logits_bytes(const shape::ModelShape& shape, int64_t predicted, const shape::TensorRank& place = {});

// Working memory of the calling thread in a backward over T tokens.
int64_t backward_scratch_bytes(const shape::ModelShape& shape, int64_t tokens);

}  // namespace collimate::model
