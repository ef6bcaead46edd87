#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/support/generate/tiny_service.h"

namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only

// Requests whose lengths are log-normal (median 20, sigma 1) up to what the model has positions for.
std::vector<Request> long_tailed_requests(int64_t count) {
  std::vector<Request> requests;
  for (int64_t i = 0; i < count; ++i) {
    const auto draw = [&](uint32_t what) { return double{base::uniform(3, 4, static_cast<uint64_t>(i), what)}; };
    const double normal = std::sqrt(-2 * std::log(1 - draw(0))) * std::cos(2 * std::numbers::pi * draw(1));
    Request request{
        .uid = 100 + i, .prompt_uid = i, .prompt = std::vector<int32_t>(10, static_cast<int32_t>(3 + i % 50))};
    request.params.max_tokens = std::clamp<int64_t>(std::llround(20 * std::exp(normal)), 1, 140);
    request.params.ignore_eos = true;
    requests.push_back(request);
  }
  return requests;
}

ServiceStats stats_after(model::Model& model, std::span<const Request> requests, const ServiceOptions& options) {
  const Outcome outcome = run_counted(model, requests, options);
  EXPECT_EQ(outcome.results.size(), requests.size());
  return outcome.stats;
}

TEST(ServiceStats, LongTailsKeepTheBatchFullUntilTheQueueIsEmpty) {
  TinyModel tiny;
  const std::vector<Request> requests = long_tailed_requests(64);
  const ServiceOptions options{.max_batch_tokens = 64, .max_batch_sequences = 8};
  const ServiceStats stats = stats_after(tiny.model, requests, options);
  EXPECT_EQ(stats.slots, 8);
  EXPECT_GT(stats.queued_steps, 100);
  EXPECT_LT(stats.queued_steps, stats.steps);
  EXPECT_GE(stats.utilisation(), 0.9);
  EXPECT_LE(stats.utilisation(), 1.0);
  // Every row is a drawn token, but for the first pieces of prompts that a step had no room for.
  int64_t tokens = 0;
  for (const Request& request : requests) tokens += request.params.max_tokens;
  EXPECT_GE(stats.rows, tokens);
  EXPECT_LE(stats.rows, tokens + 64);

  // A cache in which the longest request alone has room leaves slots empty, and the number says so.
  ServiceOptions small = options;
  small.cache_blocks = 10;
  EXPECT_LT(stats_after(tiny.model, requests, small).utilisation(), 0.75);
}

TEST(ServiceStats, SaysWhatRunsWaitsAndIsHeld) {
  TinyModel tiny;
  Service service(tiny.model, {.cache_blocks = 30, .max_batch_sequences = 2});
  EXPECT_EQ(service.stats().utilisation(), 1.0);
  EXPECT_EQ(service.stats().blocks, 30);
  const model::KvCache cache(tiny.model.shape(), model::kv_type(tiny.model.weights().options().compute), 30);
  EXPECT_EQ(service.stats().cache_bytes, cache.bytes());
  auto requests = long_tailed_requests(3);
  for (Request& request : requests) request.params.max_tokens = 20;
  service.submit(to_batch(requests));
  EXPECT_EQ(service.stats().waiting, 3);
  service.step();
  const ServiceStats stats = service.stats();
  EXPECT_EQ(stats.running, 2);
  EXPECT_EQ(stats.waiting, 1);
  EXPECT_EQ(stats.blocks_used, 2);
  EXPECT_EQ(stats.queued_rows, 2);
  base::MemoryState state;
  service.save(state);
  Service again(tiny.model, {.cache_blocks = 30, .max_batch_sequences = 2});
  again.load(state);
  EXPECT_EQ(again.stats().rows, 2);
  EXPECT_EQ(again.stats().queued_steps, 1);
  EXPECT_EQ(again.stats().queued_rows, 2);
}

// No more than 4 GiB of the numbers that the cache holds, whose size the model's type decides.
TEST(ServiceStats, TheDefaultCacheIsAsLargeAsItSays) {
  shape::ModelShape shape = tiny_shape();
  shape.max_positions = 4096;
  shape.blocks.assign(32, {.attention = {.heads = 8, .kv_heads = 8, .head_dim = 128}});
  const auto cached_values = [&](tensor::ComputeType compute) {
    const int64_t blocks = resolved({.max_batch_sequences = 64}, shape, compute).cache_blocks;
    return 2 * shape.layers() * 8 * 128 * model::KvCache::kBlockTokens * blocks;
  };
  EXPECT_EQ(cached_values(tensor::ComputeType::kFloat32), int64_t{4} << 28);
  EXPECT_EQ(cached_values(tensor::ComputeType::kInt8), int64_t{4} << 28);
  EXPECT_EQ(cached_values(tensor::ComputeType::kBFloat16Amx), int64_t{4} << 29);
  EXPECT_EQ(cached_values(tensor::ComputeType::kBFloat16Dot), int64_t{4} << 29);
}

}  // namespace
}  // namespace collimate::generate
