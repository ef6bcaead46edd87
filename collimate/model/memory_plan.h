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
#include "collimate/tensor/scratch_need.h"

namespace collimate::model {

// These functions compute from a model's shape how much memory its arrays take, before any of them exists. All sizes
// are as the allocator counts them. T is the number of tokens of one forward, packed.

// Describes the ranks that train a model together: the stage of ZeRO says what they share.
struct Sharing {
  int zero = 0;
  int ranks = 1;
  bool averages = false;  // there is a moving average of the weights that a rank keeps
  bool away = false;      // the optimizer's moments are off the device, except those of one segment at a time
};
// Returns what the weights take on the rank that takes the most, as items: "master", "gradient", "optimizer" (two
// moments) and "average" where trained, "values" where frozen, "gathered", and "panels". Segments of a base are left
// out, as they are another model's memory. Without `sharing` gradient, optimizer and average are left out too: whoever
// trains the weights plans them. Where ranks share the weights (options.ranks.shares), "gathered" and "panels" count as
// many shared segments as passes hold at once: the largest one, beside a head that is also the embedding, or with
// `whole` all of them for inference.
std::vector<tensor::MemoryItem> weights_memory(const shape::ModelShape& shape, const WeightsOptions& options,
                                               std::optional<Sharing> sharing = Sharing(), bool whole = false);

// Returns the bytes of a key-value cache of `blocks` blocks of KvCache::kBlockTokens tokens.
int64_t kv_cache_bytes(const shape::ModelShape& shape, tensor::KvType type, int64_t blocks);

// Holds how many floats a pass takes from each of the model's arenas, which are made this large before it begins.
struct PassFloats {
  int64_t workspace = 0;    // scratch of a segment, and keys and values of whole sequences
  int64_t activations = 0;  // what a training forward keeps
  int64_t gradients = 0;    // of activations, one segment at a time
};

// Computes PassFloats by running the model's own passes on a device that only counts what they take. Where ranks share
// experts, it counts the most rows that these may get: those of all ranks' tokens, if each rank has equally many.
// `blocks` is the number of blocks of KvCache::kBlockTokens tokens that the sequences of a forward fill.
class PassPlan {
 public:
  PassPlan(const shape::ModelShape& shape, const WeightsOptions& options,
           const tensor::Device& device = tensor::default_device());
  ~PassPlan();
  // Counts a forward without a backward. With 0 blocks keys and values are in a cache. Of several context ranks, of
  // which their number and kind are read, it counts the one with the most of the tokens.
  PassFloats inference(int64_t tokens, int64_t blocks, const ContextRanks& context = {});
  // Counts a forward and its backward. The weights must be trained.
  PassFloats training(int64_t tokens, int64_t blocks, Recompute recompute, const ContextRanks& context = {});

 private:
  struct Counted;
  std::unique_ptr<Counted> counted_;
  // By tokens, blocks, context ranks, what these exchange, and kind of pass.
  std::map<std::tuple<int64_t, int64_t, int, shape::ContextKind, int>, PassFloats> known_;
};

// Returns the items "workspace", with the hidden states [T, H] that the pass returns, and "activations", with the
// activations that `under_way` passes keep at once and the gradients of one.
std::vector<tensor::MemoryItem> pass_memory(const shape::ModelShape& shape, int64_t tokens, const PassFloats& floats,
                                            int64_t under_way = 1);

// Returns the bytes of logits that a record of `predicted` log-probs keeps on a tensor rank; 0 where it keeps none.
int64_t recorded_logits_bytes(const shape::ModelShape& shape, int64_t predicted, const shape::TensorRank& place = {});

// Tells `need` of the working memory that the layers of a pass over at most T tokens take, without a language model's
// head; of its backward too, unless `backward_keys`, the most keys that a token of it reads, are 0.
void add_pass_scratch(const shape::ModelShape& shape, int reduction_chunks, int64_t tokens, int64_t backward_keys,
                      tensor::ScratchNeed& need);

}  // namespace collimate::model
