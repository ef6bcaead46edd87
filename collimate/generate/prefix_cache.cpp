#include "collimate/generate/prefix_cache.h"

#include <algorithm>

#include "collimate/base/philox.h"

namespace collimate::generate {
namespace {

uint64_t root_key(uint64_t version) { return base::mix(version, 0x70726566697843ULL); }

uint64_t chain(uint64_t parent, std::span<const int32_t> tokens) {
  uint64_t key = parent;
  for (size_t i = 0; i < tokens.size(); i += 2) {
    const uint64_t pair =
        static_cast<uint64_t>(static_cast<uint32_t>(tokens[i])) << 32 | static_cast<uint32_t>(tokens[i + 1]);
    key = base::mix(key, pair);
  }
  return key;
}
static_assert(kBlockTokens % 2 == 0);

std::span<const int32_t> block_of(std::span<const int32_t> ids, int64_t index) {
  return ids.subspan(index * kBlockTokens, kBlockTokens);
}

}  // namespace

HashedPrefixCache::HashedPrefixCache(const BlockPool& pool) : pool_(pool), entries_(pool.size()) {}

int64_t HashedPrefixCache::match(uint64_t version, std::span<const int32_t> ids, std::vector<int32_t>& blocks) const {
  const int64_t most = (static_cast<int64_t>(ids.size()) - 1) / kBlockTokens;
  uint64_t parent = root_key(version);
  for (int64_t i = 0; i < most; ++i) {
    const auto tokens = block_of(ids, i);
    const uint64_t key = chain(parent, tokens);
    const auto found = block_of_key_.find(key);
    if (found == block_of_key_.end() || !holds(found->second, key, parent, tokens)) return i;
    blocks.push_back(found->second);
    parent = key;
  }
  return std::max<int64_t>(most, 0);
}

void HashedPrefixCache::publish(uint64_t version, Sequence& sequence) {
  const int64_t full = sequence.computed / kBlockTokens;
  for (; sequence.published < full; ++sequence.published) {
    const uint64_t parent = sequence.published == 0 ? root_key(version) : sequence.chain_key;
    const auto tokens = block_of(sequence.ids, sequence.published);
    sequence.chain_key = chain(parent, tokens);
    insert(sequence.blocks[sequence.published].id(), sequence.chain_key, parent, tokens);
  }
}

void HashedPrefixCache::clear() {
  block_of_key_.clear();
  std::fill(entries_.begin(), entries_.end(), Entry{});
}

bool HashedPrefixCache::holds(int32_t block, uint64_t key, uint64_t parent, std::span<const int32_t> tokens) const {
  const Entry& entry = entries_[block];
  return entry.generation == pool_.generation(block) && entry.key == key && entry.parent == parent &&
         std::equal(tokens.begin(), tokens.end(), entry.tokens.begin());
}

void HashedPrefixCache::insert(int32_t block, uint64_t key, uint64_t parent, std::span<const int32_t> tokens) {
  const auto [place, added] = block_of_key_.try_emplace(key, block);
  if (!added && place->second != block && holds(place->second, key, parent, tokens)) return;  // computed twice
  place->second = block;
  Entry& entry = entries_[block];
  if (entry.key != key) {
    const auto old = block_of_key_.find(entry.key);
    if (old != block_of_key_.end() && old->second == block) block_of_key_.erase(old);
  }
  entry.key = key;
  entry.parent = parent;
  entry.generation = pool_.generation(block);
  std::copy(tokens.begin(), tokens.end(), entry.tokens.begin());
}

std::unique_ptr<PrefixCache> make_prefix_cache(bool enabled, const BlockPool& pool) {
  if (enabled) return std::make_unique<HashedPrefixCache>(pool);
  return std::make_unique<NoPrefixCache>();
}

}  // namespace collimate::generate
