#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "collimate/generate/block_pool.h"
#include "collimate/generate/sequence.h"

namespace collimate::generate {

// Remembers which blocks hold which beginnings of sequences (prefixes). Not thread-safe.
class PrefixCache {
 public:
  virtual ~PrefixCache() = default;

  // Appends to `blocks` the ids of the blocks that hold the longest known beginning of `ids` in whole blocks, and
  // returns their number. At least one token is left over, as its hidden state has to be computed.
  virtual int64_t match(uint64_t version, std::span<const int32_t> ids, std::vector<int32_t>& blocks) const = 0;

  // Remembers the sequence's full, computed blocks. Cheap when there are no new ones.
  virtual void publish(uint64_t version, Sequence& sequence) = 0;

  virtual void clear() = 0;
  // Returns whether match() can ever find anything; if not, no request should wait for another one's prompt.
  virtual bool remembers() const = 0;
};

// Finds a block by a hash chain over the weights version, the parent block's key and the block's tokens. Tokens and
// parent are compared too, so a collision costs a miss and never gives a wrong block. The cache does not hold blocks:
// it forgets one that is allocated again.
class HashedPrefixCache final : public PrefixCache {
 public:
  explicit HashedPrefixCache(const BlockPool& pool);

  int64_t match(uint64_t version, std::span<const int32_t> ids, std::vector<int32_t>& blocks) const override;
  void publish(uint64_t version, Sequence& sequence) override;
  void clear() override;
  bool remembers() const override { return true; }

 private:
  using Tokens = std::array<int32_t, kBlockTokens>;
  struct Entry {
    uint64_t key = 0;
    uint64_t parent = 0;
    uint64_t generation = 0;  // of the block; 0: no entry, as generations of allocated blocks start at 1
    Tokens tokens = {};
  };

  bool holds(int32_t block, uint64_t key, uint64_t parent, std::span<const int32_t> tokens) const;
  void insert(int32_t block, uint64_t key, uint64_t parent, std::span<const int32_t> tokens);

  const BlockPool& pool_;
  std::vector<Entry> entries_;  // by block id
  std::unordered_map<uint64_t, int32_t> block_of_key_;
};

// The null object, with which every request computes its own prompt.
class NoPrefixCache final : public PrefixCache {
 public:
  int64_t match(uint64_t, std::span<const int32_t>, std::vector<int32_t>&) const override { return 0; }
  void publish(uint64_t, Sequence&) override {}
  void clear() override {}
  bool remembers() const override { return false; }
};

std::unique_ptr<PrefixCache> make_prefix_cache(bool enabled, const BlockPool& pool);

}  // namespace collimate::generate
