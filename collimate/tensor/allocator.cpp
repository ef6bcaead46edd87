#include "collimate/tensor/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/memory_words.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kHeaderBytes = 64;
constexpr int64_t kMappedBytes = 1 << 20;    // blocks of so many bytes are mapped, so that trimming really frees them
constexpr int64_t kHugePageBytes = 4 << 20;  // blocks of so many bytes use huge pages where the system has them
constexpr int64_t kClassesPerDoubling = 8;   // rounding costs at most an eighth

// Freed blocks of kMappedBytes or more are kept only while all kept blocks together have at most this many bytes, or
// this part of what is in use, so that sizes that come only once do not pile up.
constexpr int64_t kCachedBytes = int64_t{64} << 20;
constexpr int64_t kCachedShare = 4;

// A Header fills the 64 bytes before every block.
struct Header {
  int64_t bytes;  // of the whole block, this header included
  int32_t tag;
};

struct State {
  std::mutex mutex;
  std::vector<MemoryUse> tags{{0, "untagged", 0, 0}};
  std::map<std::pair<int, std::string>, int> ids{{{0, "untagged"}, 0}};
  std::map<int, int64_t> used, peak, budget;
  std::unordered_map<int64_t, std::vector<Header*>> cached;
  int64_t cached_bytes = 0, used_bytes = 0;
};

// This object is never destroyed, because tensors in static objects are freed after everything else.
State& state() {
  static State* instance = new State;
  return *instance;
}

thread_local int current_tag = 0;

// Returns the number of a tag, which is made at its first use. The caller holds the lock.
int intern(State& s, int worker, const std::string& purpose) {
  const auto [found, fresh] = s.ids.try_emplace({worker, purpose}, static_cast<int>(s.tags.size()));
  if (fresh) s.tags.push_back({worker, purpose, 0, 0});
  return found->second;
}

int intern(int worker, const std::string& purpose) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return intern(s, worker, purpose);
}

}  // namespace

int64_t allocated_bytes(int64_t bytes) {
  const int64_t wanted = bytes + kHeaderBytes;
  const int64_t step =
      std::max<int64_t>(64, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(wanted))) / kClassesPerDoubling);
  return (wanted + step - 1) / step * step;
}

namespace {

Header* from_system(int64_t bytes) {
  if (bytes < kMappedBytes) return static_cast<Header*>(std::aligned_alloc(64, static_cast<size_t>(bytes)));
  void* memory =
      ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (bytes >= kHugePageBytes) ::madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return static_cast<Header*>(memory);
}

void to_system(Header* header) {
  if (header->bytes < kMappedBytes) {
    std::free(header);
  } else {
    ::munmap(header, static_cast<size_t>(header->bytes));
  }
}

Header* header_of(void* block) { return reinterpret_cast<Header*>(static_cast<char*>(block) - kHeaderBytes); }

// Adds `bytes` to a tag, or takes them off it where the number is negative. The caller holds the lock.
void account(State& s, int tag, int64_t bytes) {
  MemoryUse& use = base::at(s.tags, tag);
  use.bytes += bytes;
  use.peak_bytes = std::max(use.peak_bytes, use.bytes);
  int64_t& used = s.used[use.worker];
  used += bytes;
  int64_t& peak = s.peak[use.worker];
  peak = std::max(peak, used);
  s.used_bytes += bytes;
}

std::string items_of(const State& s, int worker) {
  base::MemoryItems held;
  for (const MemoryUse& use : s.tags)
    if (use.worker == worker && use.bytes > 0) held.emplace_back(use.purpose, use.bytes);
  return base::memory_text(held);
}

void check_budget(const State& s, int tag, int64_t bytes) {
  const MemoryUse& use = base::at(s.tags, tag);
  const auto budget = s.budget.find(use.worker);
  if (budget == s.budget.end() || budget->second == 0) return;
  const auto used = s.used.find(use.worker);
  const int64_t total = bytes + (used == s.used.end() ? 0 : used->second);
  if (total <= budget->second) return;
  const auto size = [](int64_t of) { return base::byte_size(static_cast<double>(of)); };
  throw base::RunError(base::expectation(
      fmt::format("memory of worker {}", use.worker),
      fmt::format("at most {} (run.memory_budget)", size(budget->second)),
      fmt::format("{} with {} more for {} (held: {})", size(total), size(bytes), base::memory_words(use.purpose),
                  items_of(s, use.worker)),
      "a larger run.memory_budget, a smaller train.micro_batch_tokens or fewer rollout.cache_blocks"));
}

Header* take_cached(State& s, int64_t bytes) {
  const auto found = s.cached.find(bytes);
  if (found == s.cached.end() || found->second.empty()) return nullptr;
  Header* header = found->second.back();
  found->second.pop_back();
  s.cached_bytes -= bytes;
  return header;
}

}  // namespace

MemoryScope::MemoryScope(int worker, const std::string& purpose) : previous_(current_tag) {
  current_tag = intern(worker, purpose);
}
MemoryScope::MemoryScope(const std::string& purpose) : MemoryScope(memory_worker(), purpose) {}
MemoryScope::~MemoryScope() { current_tag = previous_; }

int memory_worker() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return base::at(s.tags, current_tag).worker;
}

void tag_thread_memory(int worker, const std::string& purpose) { current_tag = intern(worker, purpose); }

void* allocate(int64_t bytes) {
  State& s = state();
  const int64_t total = allocated_bytes(bytes);
  Header* header = nullptr;
  {
    const std::lock_guard lock(s.mutex);
    check_budget(s, current_tag, total);
    header = take_cached(s, total);
    account(s, current_tag, total);
  }
  if (header == nullptr) header = from_system(total);
  if (header == nullptr) {
    const std::lock_guard lock(s.mutex);
    account(s, current_tag, -total);
    throw base::RunError(base::expectation("memory", fmt::format("{} bytes", total), "none from the system"));
  }
  header->bytes = total;
  header->tag = current_tag;
  return reinterpret_cast<char*>(header) + kHeaderBytes;
}

void deallocate(void* block) noexcept {
  if (block == nullptr) return;
  Header* header = header_of(block);
  State& s = state();
  {
    const std::lock_guard lock(s.mutex);
    account(s, header->tag, -header->bytes);
    const int64_t limit = std::max(kCachedBytes, s.used_bytes / kCachedShare);
    if (header->bytes < kMappedBytes || s.cached_bytes + header->bytes <= limit) {
      s.cached[header->bytes].push_back(header);
      s.cached_bytes += header->bytes;
      return;
    }
  }
  to_system(header);
}

void discard(void* block) noexcept {
  if (block == nullptr) return;
  Header* header = header_of(block);
  {
    const std::lock_guard lock(state().mutex);
    account(state(), header->tag, -header->bytes);
  }
  to_system(header);
}

int count_block(int64_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  check_budget(s, current_tag, allocated_bytes(bytes));
  account(s, current_tag, allocated_bytes(bytes));
  return current_tag;
}

void uncount_block(int tag, int64_t bytes) noexcept {
  const std::lock_guard lock(state().mutex);
  account(state(), tag, -allocated_bytes(bytes));
}

void retag(void* block, int worker, std::optional<int> holder) {
  State& s = state();
  Header* header = header_of(block);
  const std::lock_guard lock(s.mutex);
  const MemoryUse held = base::at(s.tags, header->tag);
  if (held.worker == worker || holder.value_or(held.worker) != held.worker) return;
  const int tag = intern(s, worker, held.purpose);
  check_budget(s, tag, header->bytes);
  account(s, header->tag, -header->bytes);
  account(s, tag, header->bytes);
  header->tag = tag;
}

void set_memory_budget(int worker, int64_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.budget[worker] = bytes;
}

int64_t memory_used(int worker) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.used[worker];
}

int64_t memory_peak(int worker) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.peak[worker];
}

void reset_memory_peak(int worker) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.peak[worker] = s.used[worker];
}

std::vector<MemoryUse> memory_report() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::vector<MemoryUse> report;
  for (const MemoryUse& use : s.tags)
    if (use.peak_bytes > 0) report.push_back(use);
  std::sort(report.begin(), report.end(), [](const MemoryUse& a, const MemoryUse& b) { return a.bytes > b.bytes; });
  return report;
}

void reset_memory_peaks(int worker) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  for (MemoryUse& use : s.tags)
    if (use.worker == worker) use.peak_bytes = use.bytes;
  s.peak[worker] = s.used[worker];
}

int64_t memory_cached() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.cached_bytes;
}

void trim_memory() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  for (auto& [bytes, blocks] : s.cached) {
    for (Header* header : blocks) to_system(header);
    blocks.clear();
  }
  s.cached_bytes = 0;
}

}  // namespace collimate::tensor
