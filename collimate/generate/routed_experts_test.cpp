// A service tells of the experts that routers chose what a pass over the whole sample chooses.
#include <algorithm>

#include "collimate/generate/routed_blocks.h"
#include "collimate/tensor/allocator.h"
#include "tests/support/base/rounds.h"
#include "tests/support/generate/tiny_service.h"
#include "tests/support/model/altered_experts.h"

namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only

using Routed = std::map<int64_t, model::RoutedExperts>;  // by uid

class RoutedService : public testing::TestWithParam<int64_t> {
 protected:
  RoutedService() {
    shape::ModelShape shape = tiny_shape();
    shape.family = "mixtral";
    shape.max_positions = 400;
    for (shape::Block& block : shape.blocks) {
      block.attention.window = GetParam();
      block.mlp.experts = {.count = 6, .per_token = 2, .intermediate = 24, .normalized = true};
    }
    weights_ = std::make_shared<model::Weights>(shape, model::WeightsOptions{}, tensor::Exec{});
    weights_->initialize(1, 0.3F);
    model_ = std::make_unique<model::Model>(weights_, tensor::Exec{});
    for (Request& request : requests_)
      if (request.uid % 2 == 0) request.params.logit_bias = {{5, 8.0}, {6, 8.0}};  // texts repeat and are guessed
  }

  void collect(Service& service) {
    for (const Emission& emission : service.take()) {
      auto& tokens = drawn_[emission.uid];
      tokens.insert(tokens.end(), emission.tokens.begin(), emission.tokens.end());
      if (emission.finish != Finish::kRunning) routed_[emission.uid] = emission.routed_experts;
    }
  }
  void run(Service& service) {
    while (service.step()) collect(service);
    collect(service);
  }

  // Counts them over all requests, the last tokens left out, which nobody ran.
  model::RouterAgreement agreement() {
    model::RouterAgreement agreement;
    for (const Request& request : requests_) {
      std::vector<int32_t> ids = request.prompt;
      ids.insert(ids.end(), drawn_.at(request.uid).begin(), drawn_.at(request.uid).end() - 1);
      const std::span<const int32_t> whole(ids);
      model::TokenBatch tokens = model::pack_sequences({&whole, 1});
      tokens.experts = routed_.at(request.uid);
      tokens.agreement = &agreement;
      model_->forward(tokens);
      tokens_ += std::ssize(ids);
    }
    return agreement;
  }
  void expect_none_differ() {
    const model::RouterAgreement found = agreement();
    EXPECT_EQ(found.compared, 2 * tokens_);
    EXPECT_EQ(found.differing, 0);
  }

  std::shared_ptr<model::Weights> weights_;
  std::unique_ptr<model::Model> model_;
  std::vector<Request> requests_ = random_requests(18, 3);
  std::map<int64_t, std::vector<int32_t>> drawn_;
  Routed routed_;
  int64_t tokens_ = 0;
};

// Samples of a prompt, one cache for all, speculation, few blocks, steps that cut prompts.
TEST_P(RoutedService, TellsWhatScoringChooses) {
  ServiceStats total;
  for (uint32_t trial = 0; trial < base::rounds(24); ++trial) {
    AnyBatch any(trial, requests_, {.routed_experts = true});
    any.options.speculation_tokens = random_below(trial, 5, 6);
    Service service(*model_, any.options);
    drawn_.clear();
    tokens_ = 0;
    const auto half = static_cast<size_t>(random_below(trial, 6, any.order.size()));
    service.submit(to_batch(std::span(any.order).first(half)));
    run(service);
    service.submit(to_batch(std::span(any.order).subspan(half)));
    run(service);
    expect_none_differ();
    const ServiceStats stats = service.stats();
    total.preemptions += stats.preemptions;
    total.shared_prompt_tokens += stats.shared_prompt_tokens;
    total.accepted_tokens += stats.accepted_tokens;
  }
  EXPECT_GT(total.preemptions, 0);
  EXPECT_GT(total.shared_prompt_tokens, 0);
  EXPECT_GT(total.accepted_tokens, 0);
}

// The prompt's first blocks are given back, where there is a window, before the samples part.
TEST_P(RoutedService, TellsThoseOfALongPromptToEachOfItsSamples) {
  requests_.resize(3);
  for (int32_t t = 0; t < 250; ++t) requests_[0].prompt.push_back((t * t + 5) % 61);
  share_one_prompt(requests_);
  Service service(*model_, {.max_batch_tokens = 40, .routed_experts = true});
  service.submit(to_batch(requests_));
  run(service);
  EXPECT_GE(service.stats().shared_prompt_tokens, 2 * 250);
  expect_none_differ();
}

TEST_P(RoutedService, GoesOnAfterALoad) {
  for (const int steps : {1, 7, 40}) {
    base::MemoryState state;
    const ServiceOptions options{.max_batch_tokens = 24, .max_batch_sequences = 7, .routed_experts = true};
    drawn_.clear();
    tokens_ = 0;
    Service first(*model_, options), second(*model_, options);
    first.submit(to_batch(requests_));
    for (int step = 0; step < steps; ++step) first.step();
    first.save(state);
    second.load(state);
    run(second);
    expect_none_differ();
  }
}

TEST_P(RoutedService, TellsNothingUnlessAsked) {
  Service service(*model_, {});
  service.submit(to_batch(requests_));
  run(service);
  for (const auto& [uid, experts] : routed_) EXPECT_TRUE(experts.empty());
}

// A router in each block, two experts of each, two bytes.
TEST_P(RoutedService, TakesWhatIsPlanned) {
  constexpr int kWorker = 41;
  const tensor::MemoryScope scope(kWorker, "tensors");
  const Service service(*model_, {.cache_blocks = 30, .routed_experts = true});
  int64_t taken = 0;
  for (const tensor::MemoryUse& use : tensor::memory_report())
    if (use.worker == kWorker && use.purpose == "routed_experts") taken = use.bytes;
  EXPECT_EQ(taken, routed_bytes(model_->shape(), 30));
  EXPECT_EQ(taken, tensor::allocated_bytes(30 * kBlockTokens * std::ssize(model_->shape().blocks) * 2 * 2));
  EXPECT_EQ(routed_bytes(tiny_shape(), 30), 0);
}

// The count sees a single expert of a single token.
TEST_P(RoutedService, AnAlteredChoiceIsCounted) {
  Service service(*model_, {.routed_experts = true});
  service.submit(to_batch(requests_));
  run(service);
  EXPECT_EQ(agreement().differing, 0);
  auto& experts = routed_.at(requests_[4].uid);
  model::testing::alter_experts(experts, model_->shape(), std::ssize(experts) / model::routed_width(model_->shape()));
  EXPECT_EQ(agreement().differing, 1);
}

INSTANTIATE_TEST_SUITE_P(Windows, RoutedService, testing::Values(0, 20));

}  // namespace
}  // namespace collimate::generate
