#include "collimate/tensor/allocator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>

#include "collimate/base/error.h"
#include "collimate/tensor/arena.h"
#include "collimate/tensor/kernels/aligned_buffer.h"

namespace collimate::tensor {
namespace {

int64_t held(int worker, const std::string& purpose) {
  for (const MemoryUse& use : memory_report())
    if (use.worker == worker && use.purpose == purpose) return use.bytes;
  return 0;
}

TEST(Allocator, TagsByWorkerAndPurpose) {
  const MemoryScope outer(7, "gradient");
  const Buffer first(1000);
  {
    const MemoryScope inner("optimizer");
    EXPECT_EQ(memory_worker(), 7);
    const Buffer second(5000000);
    EXPECT_GE(held(7, "optimizer"), 5000000);
    EXPECT_LE(held(7, "optimizer"), 5000000 * 9 / 8 + 4096);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(second.data()) % 64, 0U);
  }
  EXPECT_EQ(held(7, "optimizer"), 0);
  EXPECT_GE(held(7, "gradient"), 1000);
  std::thread([] { EXPECT_EQ(memory_worker(), 0); }).join();
}

TEST(Allocator, FreedBlocksAreUsedAgain) {
  trim_memory();  // other tests may have left as much as is kept
  const MemoryScope scope(8, "step");
  void* first = allocate(3 << 20);
  deallocate(first);
  const int64_t cached = memory_cached();
  EXPECT_GE(cached, 3 << 20);
  void* again = allocate(3 << 20);
  EXPECT_EQ(again, first);
  EXPECT_LT(memory_cached(), cached);
  deallocate(again);
  trim_memory();
  EXPECT_EQ(memory_cached(), 0);
}

TEST(Allocator, SizesThatComeOnceDoNotPileUp) {
  trim_memory();
  for (int64_t mebibytes = 10; mebibytes < 60; ++mebibytes) deallocate(allocate(mebibytes << 20));
  EXPECT_LE(memory_cached(), int64_t{64} << 20);
  EXPECT_GE(memory_cached(), int64_t{10} << 20);
  trim_memory();
}

TEST(Allocator, BudgetNamesTheItem) {
  const MemoryScope scope(9, "kv_cache");
  set_memory_budget(9, 100000);
  const Buffer held_before(60000);
  std::string message;
  try {
    const MemoryScope inner("activations");
    const Buffer more(60000);
  } catch (const base::RunError& error) {
    message = error.what();
  }
  EXPECT_EQ(message,
            "[memory of worker 9] expected at most 97.7 KiB (run.memory_budget), got 120 KiB with 60 KiB more for "
            "activations kept for the backward pass (held: keys and values (the KV cache) 60 KiB); try a larger "
            "run.memory_budget, a smaller train.micro_batch_tokens or fewer rollout.cache_blocks");
  EXPECT_EQ(held(9, "activations"), 0);
  set_memory_budget(9, 0);
  const Buffer now(60000);
}

TEST(Allocator, PeakOfAWorkerIsOfAllPurposesTogether) {
  const MemoryScope scope(13, "first");
  const int64_t one = allocated_bytes(50000);
  {
    const Buffer first(50000);
    const MemoryScope inner("second");
    const Buffer second(50000);
  }
  EXPECT_EQ(memory_peak(13), 2 * one);
  EXPECT_EQ(memory_used(13), 0);
  reset_memory_peak(13);
  EXPECT_EQ(memory_peak(13), 0);
  const Buffer third(50000);
  EXPECT_EQ(memory_peak(13), one);
  for (const MemoryUse& use : memory_report())
    if (use.worker == 13 && use.purpose == "second") {
      EXPECT_EQ(use.peak_bytes, one);
    }
  reset_memory_peaks(13);
  for (const MemoryUse& use : memory_report()) EXPECT_FALSE(use.worker == 13 && use.purpose == "second");
}

TEST(Allocator, DiscardedBlocksAreNotKept) {
  const MemoryScope scope(14, "once");
  trim_memory();
  Buffer buffer(3 << 20);
  buffer.discard();
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(memory_cached(), 0);
  EXPECT_EQ(held(14, "once"), 0);
}

TEST(Allocator, ThreadsOfAWorkerCountForIt) {
  std::thread([] {
    tag_thread_memory(15, "tensors");
    const Buffer rows(4000);
    AlignedBuffer kernel;
    kernel.reserve(5000);
    EXPECT_EQ(held(15, "tensors"), allocated_bytes(4000));
    EXPECT_EQ(held(15, "scratch"), allocated_bytes(5000));
  }).join();
  EXPECT_EQ(memory_used(15), 0);
}

TEST(Allocator, BlocksChangeHands) {
  const MemoryScope scope(10, "message");
  const Buffer buffer(4000);
  const int64_t bytes = held(10, "message");
  retag(buffer.data(), 11);
  EXPECT_EQ(held(10, "message"), 0);
  EXPECT_EQ(held(11, "message"), bytes);
  retag(buffer.data(), 17, 10);
  EXPECT_EQ(held(11, "message"), bytes) << "it was no longer of 10";
  set_memory_budget(11, bytes);
  retag(buffer.data(), 11);  // counts once
  set_memory_budget(17, bytes - 1);
  EXPECT_THROW(retag(buffer.data(), 17, 11), base::RunError);
  EXPECT_EQ(held(11, "message"), bytes);
  EXPECT_EQ(held(17, "message"), 0);
  for (const int worker : {11, 17}) set_memory_budget(worker, 0);
}

TEST(Allocator, TensorsChangeHandsWithTheirBlock) {
  install_aten_allocator();
  const MemoryScope scope(18, "message");
  const at::Tensor whole = at::empty({1000, 100}, at::kFloat);
  const int64_t bytes = held(18, "message");
  retag(whole.slice(0, 900, 1000), 19);
  EXPECT_EQ(held(18, "message"), 0);
  EXPECT_EQ(held(19, "message"), bytes);
  std::vector<float> elsewhere(16);
  retag(at::from_blob(elsewhere.data(), {16}), 19);
  auto kept = std::make_shared<std::vector<float>>(16);
  retag(at::from_blob(kept->data(), {16}, [kept](void*) {}), 19);
  retag(at::Tensor(), 19);
  EXPECT_EQ(held(19, "message"), bytes);
}

TEST(Allocator, TensorsAreCounted) {
  install_aten_allocator();
  const MemoryScope scope(12, "losses");
  {
    const at::Tensor tensor = at::empty({1000, 100}, at::kFloat);
    EXPECT_GE(held(12, "losses"), 400000);
  }
  EXPECT_EQ(held(12, "losses"), 0);
}

TEST(Arena, ReservedRoomIsOneChunk) {
  Arena arena;
  arena.take(10);
  arena.reset();
  const MemoryScope scope(16, "arena");
  arena.reserve(1 << 20);
  const int64_t bytes = arena.bytes();
  EXPECT_GE(bytes, 4 << 20);
  EXPECT_EQ(held(16, "arena"), allocated_bytes(4 << 20));
  for (int i = 0; i < 16; ++i) arena.take(1 << 16);
  EXPECT_EQ(arena.bytes(), bytes);
  EXPECT_THROW(arena.reserve(1 << 21), std::logic_error);
  arena.reset();
  arena.reserve(1 << 19);
  arena.reserve((1 << 20) + 1000);  // still in the same block
  EXPECT_EQ(arena.bytes(), bytes);
  arena.reserve(1 << 21);
  EXPECT_EQ(held(16, "arena"), allocated_bytes(8 << 20));
}

TEST(Arena, PiecesStayAndChunksAreKept) {
  Arena arena;
  float* first = arena.take(10);
  const Arena::Mark mark = arena.mark();
  float* second = arena.take(1 << 20);
  std::memset(second, 1, 4 << 20);
  first[9] = 3;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second) % 64, 0U);
  const int64_t bytes = arena.bytes();
  arena.rewind(mark);
  EXPECT_EQ(arena.take(1 << 20), second);
  arena.reset();
  EXPECT_EQ(arena.take(10), first);
  EXPECT_EQ(arena.bytes(), bytes);
}

}  // namespace
}  // namespace collimate::tensor
