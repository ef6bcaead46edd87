// Blocks behind a sliding window are given back while a sequence grows.
#include <algorithm>

#include "collimate/generate/sequence.h"
#include "collimate/tensor/ops/attention_window.h"
#include "tests/support/generate/tiny_service.h"

namespace collimate::generate {
namespace {

using testing_support::expect_scored;
using testing_support::Outcome;
using testing_support::Request;
using testing_support::run_counted;

constexpr int64_t kWindow = 20;
constexpr int64_t kLength = 400;
constexpr int64_t kMostBlocks = 6;  // 64 positions and a window, wherever it begins in a block

class Windows : public testing::Test {
 protected:
  explicit Windows(int64_t second_window = kWindow) {
    shape::ModelShape shape = testing_support::tiny_shape();
    shape.max_positions = kLength;
    shape.blocks[0].attention.window = kWindow;
    shape.blocks[1].attention.window = second_window;
    weights_ = std::make_shared<model::Weights>(shape, model::WeightsOptions{}, tensor::Exec{});
    weights_->initialize(1, 0.3F);
    model_ = std::make_unique<model::Model>(weights_, tensor::Exec{});
  }
  // `samples` of one prompt, each as long as the model's positions allow.
  static std::vector<Request> requests(int64_t samples, int64_t prompt_tokens) {
    std::vector<Request> all;
    for (int64_t i = 0; i < samples; ++i) {
      Request request{.uid = 100 + i, .prompt_uid = 0, .prompt = {}, .params = {}};
      for (int64_t t = 0; t < prompt_tokens; ++t) request.prompt.push_back(static_cast<int32_t>((t * t + 5) % 61));
      request.params.max_tokens = kLength;
      request.params.ignore_eos = true;
      all.push_back(request);
    }
    return all;
  }

  std::shared_ptr<model::Weights> weights_;
  std::unique_ptr<model::Model> model_;
};
struct WindowsInOneLayer : Windows {
  WindowsInOneLayer() : Windows(0) {}
};

TEST_F(Windows, MemoryOfALongCompletionStaysBounded) {
  const auto one = requests(1, 3);
  for (const bool remembers : {true, false}) {
    const Outcome outcome = run_counted(*model_, one, {.prefix_cache = remembers});
    EXPECT_EQ(outcome.results.at(100).tokens.size(), static_cast<size_t>(kLength - 3));
    EXPECT_LE(outcome.stats.blocks_peak, kMostBlocks);
    expect_scored(*model_, one, outcome.results);
  }
}

TEST_F(WindowsInOneLayer, EveryBlockIsKept) {
  const auto one = requests(1, 3);
  const Outcome outcome = run_counted(*model_, one, {});
  EXPECT_EQ(outcome.stats.blocks_peak, kLength / kBlockTokens);
  expect_scored(*model_, one, outcome.results);
}

// Samples share a prompt whose first blocks are given back while it is computed.
TEST_F(Windows, SamplesOfALongPromptHaveTheBitsOfScoring) {
  const auto samples = requests(3, 250);
  const Outcome outcome = run_counted(*model_, samples, {.max_batch_tokens = 40});
  expect_scored(*model_, samples, outcome.results);
  EXPECT_LE(outcome.stats.blocks_peak, blocks_for(250) + 3 * kMostBlocks);
}

// Too few blocks for all: the latest are run again, from their first token.
TEST_F(Windows, PreemptedRequestsHaveTheBitsOfScoring) {
  const auto samples = requests(8, 9);
  const Outcome outcome = run_counted(*model_, samples, {.cache_blocks = kLength / kBlockTokens + 2});
  EXPECT_GT(outcome.stats.preemptions, 0);
  expect_scored(*model_, samples, outcome.results);
}

TEST_F(Windows, ProposedTokensHaveTheBitsOfScoring) {
  const auto one = requests(2, 30);
  const Outcome outcome = run_counted(*model_, one, {.speculation_tokens = 4});
  expect_scored(*model_, one, outcome.results);
  EXPECT_LE(outcome.stats.blocks_peak, 2 * (kMostBlocks + 1));
}

TEST(FirstBlockRead, IsThatOfTheWindowsSixtyFourPositions) {
  EXPECT_EQ(tensor::first_block_read(1000, 0), 0);
  EXPECT_EQ(tensor::first_block_read(19, 20), 0);
  EXPECT_EQ(tensor::first_block_read(82, 20), 0);
  EXPECT_EQ(tensor::first_block_read(83, 20), 4);
  EXPECT_EQ(tensor::first_block_read(147, 20), 8);
}

}  // namespace
}  // namespace collimate::generate
