#include "collimate/text/word_cache.h"

#include <atomic>

namespace collimate::text {
namespace {

constexpr size_t kMostWords = size_t{1} << 15;

}  // namespace

WordCache& WordCache::of_thread(uint64_t owner) {
  static thread_local WordCache cache;
  if (cache.owner_ != owner) {
    cache.clear();
    cache.owner_ = owner;
  }
  return cache;
}

uint64_t WordCache::new_owner() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

void WordCache::clear() {
  words_.clear();
  ids_.clear();
}

bool WordCache::append(std::string_view word, std::vector<int32_t>& out) const {
  if (word.size() > kLongestWord) return false;
  const auto found = words_.find(word);
  if (found == words_.end()) return false;
  const auto begin = ids_.begin() + found->second.begin;
  out.insert(out.end(), begin, begin + found->second.count);
  return true;
}

void WordCache::insert(std::string_view word, std::span<const int32_t> ids) {
  if (word.size() > kLongestWord) return;
  if (words_.size() >= kMostWords) clear();
  words_.emplace(word, Range{static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(ids.size())});
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

}  // namespace collimate::text
