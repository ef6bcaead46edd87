#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "collimate/base/error.h"
#include "collimate/base/memory_state.h"
#include "collimate/generate/sequence.h"
#include "collimate/generate/service.h"
#include "tests/support/base/error_of.h"
#include "tests/support/base/rounds.h"
#include "tests/support/generate/tiny_service.h"

// A service that speculates gives what one that does not gives, in bits.
namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only

// Requests with every option, whose texts repeat: few words in the prompts, and greedy, biased or narrow draws.
std::vector<Request> repeating_requests(int64_t count, int64_t samples) {
  std::vector<Request> requests = mixed_requests(count, samples);
  for (Request& request : requests) {
    for (int32_t& id : request.prompt) id = 3 + id % 4;
    const auto kind = request.uid % 4;
    if (kind == 0) request.params.temperature = 0;
    if (kind == 1) request.params.temperature = 0.4;
    if (kind == 2) request.params.logit_bias = {{5, 9.0}, {6, 9.0}, {2, 5.0}};
    if (kind == 3) request.params.frequency_penalty = -2;
  }
  return requests;
}

class ServiceSpeculation : public testing::Test {
 protected:
  ServiceSpeculation() : requests_(repeating_requests(36, 3)) {
    options_.seed = 77;
    options_.tokenizer = &tokenizer_;
    speculating_ = options_;
    speculating_.speculation_tokens = 8;
    speculating_.speculation_rows = 64;
  }

  // Gives what comes without speculation.
  const Results& plain() {
    if (plain_.empty()) plain_ = run_each(tiny_.model, requests_, options_);
    return plain_;
  }

  // Runs to the end; counts go to `counted_`.
  Results run(model::Model& model, std::span<const Request> requests, const ServiceOptions& options) {
    Outcome outcome = run_counted(model, requests, options);
    counted_ = outcome.stats;
    EXPECT_EQ(counted_.blocks_used, 0);
    return std::move(outcome.results);
  }

  struct Guessed {
    int64_t accepted = 0, rejected = 0;
  };
  // Trials of batches, with the trial's draft or none; each has to give what comes without speculation.
  Guessed guess_in_any_batch(uint32_t trials, uint64_t most_tokens,
                             const std::function<model::Model*(uint32_t trial)>& draft) {
    Guessed guessed;
    for (uint32_t trial = 0; trial < trials; ++trial) {
      AnyBatch batch(trial, requests_, speculating_);
      batch.options.speculation_tokens = 1 + random_below(trial, 5, most_tokens);
      batch.options.speculation_rows = 2 + random_below(trial, 6, 100);
      batch.options.draft = draft(trial);
      EXPECT_EQ(run(tiny_.model, batch.order, batch.options), plain()) << "trial " << trial;
      guessed.accepted += counted_.accepted_tokens;
      guessed.rejected += counted_.proposed_tokens - counted_.accepted_tokens;
    }
    return guessed;
  }

  // A request that can say nothing but token 7.
  Request monotone(int64_t max_tokens) {
    Request request{.uid = 1, .prompt_uid = 1, .prompt = {7, 7, 7}};
    request.params.max_tokens = max_tokens;
    request.params.logit_bias = {{7, 100.0}};
    return request;
  }

  TinyModel tiny_;
  PieceTokenizer tokenizer_ = tiny_tokenizer({"a", "b", "ab", "\xC3", "\xA9", "c", "ba"});
  ServiceOptions options_, speculating_;
  std::vector<Request> requests_;
  Results plain_;
  ServiceStats counted_;
};

TEST_F(ServiceSpeculation, SameBitsInAnyBatch) {
  constexpr int kTrials = base::rounds(24);
  const Guessed guessed = guess_in_any_batch(kTrials, 20, [](uint32_t) { return nullptr; });
  EXPECT_GT(guessed.accepted, 20 * kTrials);
  EXPECT_GT(guessed.rejected, 20 * kTrials);
}

// A draft of other weights is wrong at times, one of the same weights never.
TEST_F(ServiceSpeculation, SameBitsWithADraftInAnyBatch) {
  constexpr int kTrials = base::rounds(16);
  TinyModel near, other(2);
  const Guessed guessed =
      guess_in_any_batch(kTrials, 14, [&](uint32_t trial) { return trial % 2 == 0 ? &near.model : &other.model; });
  EXPECT_GT(guessed.accepted, 20 * kTrials);
  EXPECT_GT(guessed.rejected, 20 * kTrials);
}

// The draft draws with the model's own random numbers, parameters and history: of equal weights, it draws the same.
TEST_F(ServiceSpeculation, ADraftOfTheSameWeightsIsRightUntilTheEnd) {
  TinyModel same;
  speculating_.draft = &same.model, speculating_.max_batch_sequences = 8;
  for (Request& request : requests_) request.params.stop.clear();  // behind which guesses go on
  std::erase_if(requests_, [](const Request& request) { return !request.params.ignore_eos; });
  for (const tensor::KvType type : {tensor::KvType::kFloat32, tensor::KvType::kInt8, tensor::KvType::kFp8}) {
    options_.kv_type = speculating_.kv_type = type;
    const Results without = run_each(tiny_.model, requests_, options_);
    EXPECT_EQ(run(tiny_.model, requests_, speculating_), without);
    EXPECT_GT(counted_.accepted_tokens, 100);
    EXPECT_EQ(counted_.accepted_tokens, counted_.proposed_tokens);
  }
}

TEST_F(ServiceSpeculation, ADraftOfFewerTokensOrPositionsGuessesAsFarAsItGoes) {
  shape::ModelShape small = tiny_shape();
  small.vocabulary = 40;
  small.max_positions = 50;
  auto weights = std::make_shared<model::Weights>(small, model::WeightsOptions{}, tensor::Exec{});
  weights->initialize(1, 0.3F);
  model::Model draft(weights, {});
  speculating_.draft = &draft;
  EXPECT_EQ(run(tiny_.model, requests_, speculating_), plain());
  EXPECT_GT(counted_.proposed_tokens, 0);
}

TEST_F(ServiceSpeculation, ADraftGoesOnAfterNewWeightsAndAfterALoad) {
  TinyModel same;
  speculating_.draft = &same.model;
  base::MemoryState state;
  Results results;
  save_after(7, tiny_.model, requests_, speculating_, results, state);
  Service service(tiny_.model, speculating_);
  service.load(state);
  drain(service, results);
  EXPECT_EQ(results, plain());
  EXPECT_GT(service.stats().accepted_tokens, 100);
}

TEST_F(ServiceSpeculation, ADraftWithoutLogitsIsRefused) {
  shape::ModelShape scorer = tiny_shape();
  scorer.head = shape::Head::kScore;
  model::Model draft(std::make_shared<model::Weights>(scorer, model::WeightsOptions{}, tensor::Exec{}), {});
  speculating_.draft = &draft;
  EXPECT_EQ(base::message_of([&] { Service(tiny_.model, speculating_); }),
            "[generate.draft] expected a language model, got one with the head score");
}

TEST_F(ServiceSpeculation, EveryReasonToEndOccurs) {
  std::map<Finish, int> reasons;
  for (const auto& [uid, result] : run(tiny_.model, requests_, speculating_)) ++reasons[result.finish];
  for (const Finish finish : {Finish::kEos, Finish::kStop, Finish::kLength}) EXPECT_GT(reasons[finish], 1);
}

TEST_F(ServiceSpeculation, SameBitsWithPreemption) {
  speculating_.cache_blocks = 9;
  EXPECT_EQ(run(tiny_.model, requests_, speculating_), plain());
  EXPECT_GT(counted_.preemptions, 0);
  EXPECT_GT(counted_.accepted_tokens, 100);
  EXPECT_LE(counted_.blocks_peak, 9);
}

TEST_F(ServiceSpeculation, SameBitsWithThreadsAndInBFloat16) {
  host::CorePool pool(3);
  TinyModel threaded(1, {&pool});
  speculating_.exec = {&pool};
  EXPECT_EQ(run(threaded.model, requests_, speculating_), plain());
  for (const auto compute : {tensor::ComputeType::kBFloat16Amx, tensor::ComputeType::kBFloat16Dot}) {
    TinyModel rounded(1, {}, compute);
    const Results without = run_each(rounded.model, requests_, options_);
    EXPECT_NE(without, plain());
    EXPECT_EQ(run(rounded.model, requests_, speculating_), without);
    EXPECT_GT(counted_.accepted_tokens, 100);
  }
}

TEST_F(ServiceSpeculation, SamplesOfOnePromptShareItAndDiffer) {
  share_one_prompt(requests_);
  EXPECT_EQ(run(tiny_.model, requests_, speculating_), plain());
  EXPECT_EQ(counted_.prefill_tokens, static_cast<int64_t>(requests_[0].prompt.size()));
  EXPECT_GT(counted_.accepted_tokens, 100);
}

TEST_F(ServiceSpeculation, SaveInTheMiddleAndLoad) {
  for (const int steps : {1, 3, 9}) {
    Results results;
    base::MemoryState state;
    const ServiceStats before = save_after(steps, tiny_.model, requests_, speculating_, results, state);
    Service service(tiny_.model, speculating_);
    service.load(state);
    EXPECT_GT(service.running(), 0);
    EXPECT_EQ(service.stats().proposed_tokens, before.proposed_tokens);
    EXPECT_EQ(service.stats().accepted_tokens, before.accepted_tokens);
    drain(service, results);
    EXPECT_GT(service.stats().accepted_tokens, before.accepted_tokens);
    EXPECT_EQ(results, plain());
  }
}

TEST_F(ServiceSpeculation, PauseAndCancel) {
  Service service(tiny_.model, speculating_);
  service.submit(to_batch(requests_));
  Results results;
  for (int step = 0; step < 4; ++step) service.step();
  service.pause();
  EXPECT_FALSE(service.step());
  service.resume();
  const std::vector<int64_t> gone = {requests_[1].uid, requests_[8].uid, requests_[19].uid};
  service.cancel(gone);
  drain(service, results);
  int cancelled = 0;
  for (const auto& [uid, result] : results) {
    Result expected = plain().at(uid);
    if (result.finish == Finish::kCancelled) {
      ++cancelled;
      ASSERT_LT(result.tokens.size(), expected.tokens.size());
      expected.top.resize(expected.top.size() / expected.tokens.size() * result.tokens.size());
      expected.tokens.resize(result.tokens.size());
      expected.log_prob_bits.resize(result.tokens.size());
      expected.versions.resize(result.tokens.size());
      expected.finish = Finish::kCancelled;
    }
    EXPECT_EQ(result, expected) << uid;
  }
  EXPECT_GT(cancelled, 0);
  EXPECT_EQ(service.stats().blocks_used, 0);
}

// After an update the new weights have the whole say over the sequence; each token has the version that drew it.
TEST_F(ServiceSpeculation, UpdateInTheMiddle) {
  Request request = monotone(60);
  request.prompt = {7, 8, 7, 8, 7, 8};
  request.params.logit_bias = {{7, 6.0}, {8, 6.0}};
  request.params.ignore_eos = true;
  Service service(tiny_.model, speculating_);
  service.submit(to_batch({&request, 1}));
  Results results;
  for (int step = 0; step < 6; ++step) service.step();
  collect(service, results);
  const size_t kept = results.at(1).tokens.size();
  ASSERT_LT(kept, 60U);
  tiny_.weights->initialize(2, 0.3F);
  tiny_.weights->commit();
  service.update(41);
  drain(service, results);
  EXPECT_GT(service.stats().accepted_tokens, 0);
  const Result& result = results.at(1);
  Request rest = request;
  rest.prompt.insert(rest.prompt.end(), result.tokens.begin(), result.tokens.begin() + kept);
  rest.params.max_tokens -= static_cast<int64_t>(kept);
  const Result fresh = run_all(tiny_.model, {&rest, 1}, options_).at(1);
  EXPECT_EQ(fresh.tokens, std::vector<int32_t>(result.tokens.begin() + kept, result.tokens.end()));
  EXPECT_EQ(fresh.log_prob_bits,
            std::vector<uint32_t>(result.log_prob_bits.begin() + kept, result.log_prob_bits.end()));
  for (size_t t = 0; t < result.versions.size(); ++t) EXPECT_EQ(result.versions[t] == 41, t >= kept);
}

TEST_F(ServiceSpeculation, ARepeatingTextTakesFewSteps) {
  const Request request = monotone(100);
  const Results without = run(tiny_.model, {&request, 1}, options_);
  EXPECT_EQ(counted_.steps, 100);
  EXPECT_EQ(counted_.proposed_tokens, 0);
  const int64_t decoded = counted_.decoded_tokens;
  EXPECT_EQ(run(tiny_.model, {&request, 1}, speculating_), without);
  EXPECT_EQ(without.at(1).tokens, std::vector<int32_t>(100, 7));
  EXPECT_LE(counted_.steps, 13) << "the prompt, 4 + 1, then 8 + 1 a step";
  EXPECT_EQ(counted_.steps + counted_.accepted_tokens, 100);
  EXPECT_EQ(counted_.proposed_tokens, counted_.accepted_tokens);
  EXPECT_EQ(counted_.decoded_tokens, decoded) << "no token is decoded twice";
}

// All that ends a request does so in the middle of a run of accepted tokens too.
TEST_F(ServiceSpeculation, EndsInTheMiddleOfARun) {
  const PieceTokenizer letters = tiny_tokenizer({"a", "b", "c"});
  options_.tokenizer = speculating_.tokenizer = &letters;
  for (int64_t end = 3; end < 22; ++end) {
    for (const bool early : {false, true}) {
      Request request = monotone(40);
      request.params.stop = {std::string(static_cast<size_t>(end), 'b')};
      if (early) request.params.min_tokens = end + 5;
      const Result result = run(tiny_.model, {&request, 1}, speculating_).at(1);
      EXPECT_EQ(result, run_all(tiny_.model, {&request, 1}, options_).at(1));
      EXPECT_EQ(result.finish, Finish::kStop);
      EXPECT_EQ(static_cast<int64_t>(result.tokens.size()), early ? end + 6 : end);
      EXPECT_LE(counted_.steps, 3 + end / 9);
    }
    Request limited = monotone(40);
    ServiceOptions shorter = speculating_;
    shorter.max_sequence_tokens = 3 + end;
    const Result result = run(tiny_.model, {&limited, 1}, shorter).at(1);
    EXPECT_EQ(static_cast<int64_t>(result.tokens.size()), end);
    EXPECT_EQ(result.finish, Finish::kLength);
  }
}

// Between two steps a request holds what it would hold without speculation.
TEST_F(ServiceSpeculation, RejectedTokensKeepNoBlocks) {
  speculating_.speculation_tokens = 40;
  int64_t more = 0;
  for (const Request& request : requests_) {
    Service service(tiny_.model, speculating_);
    service.submit(to_batch({&request, 1}));
    Results results;
    while (service.step()) {
      collect(service, results);
      const auto& result = results.at(request.uid);
      const auto length = static_cast<int64_t>(request.prompt.size() + result.tokens.size());
      const int64_t held = result.finish == Finish::kRunning ? blocks_for(length - 1) : 0;
      ASSERT_EQ(service.stats().blocks_used, held);
      more += service.stats().blocks_peak > blocks_for(length);
    }
  }
  EXPECT_GT(more, 0) << "some guess took a block that had to go back";
}

// The prefix cache remembers all that was drawn of completions and nothing else.
TEST_F(ServiceSpeculation, CompletionsAsPromptsFindTheirBlocks) {
  std::vector<Request> again = requests_;
  for (Request& request : again) {
    const auto& tokens = plain().at(request.uid).tokens;
    request.uid += 1000;
    request.prompt_uid = request.uid;
    request.prompt.insert(request.prompt.end(), tokens.begin(), tokens.end());
    request.params.max_tokens = 30;
    request.params.min_tokens = 0;
  }
  const Results expected = run_each(tiny_.model, again, options_);
  const auto shared_tokens = [&](const ServiceOptions& options) {
    Service service(tiny_.model, options);
    Results first, second;
    service.submit(to_batch(requests_));
    drain(service, first);
    EXPECT_EQ(first, plain());
    const int64_t before = service.stats().shared_prompt_tokens;
    service.submit(to_batch(again));
    drain(service, second);
    EXPECT_EQ(second, expected);
    return service.stats().shared_prompt_tokens - before;
  };
  const int64_t shared = shared_tokens(options_);
  EXPECT_GT(shared, 500);
  EXPECT_EQ(shared_tokens(speculating_), shared);
}

// A request that ends in the middle of a run has published the blocks that the run filled.
TEST_F(ServiceSpeculation, TheLastBlocksOfACompletionAreRemembered) {
  for (int64_t tokens = 10; tokens < 60; ++tokens) {
    Request request = monotone(tokens);
    Service service(tiny_.model, speculating_);
    Results results;
    service.submit(to_batch({&request, 1}));
    drain(service, results);
    request.uid = 2;
    request.prompt.assign(static_cast<size_t>(4 + tokens), 7);
    service.submit(to_batch({&request, 1}));
    drain(service, results);
    EXPECT_EQ(service.stats().shared_prompt_tokens, (3 + tokens - 1) / kBlockTokens * kBlockTokens);
  }
}

TEST_F(ServiceSpeculation, ALargeBatchProposesNothing) {
  std::vector<Request> many(20, monotone(40));
  for (size_t i = 0; i < many.size(); ++i) many[i].uid = static_cast<int64_t>(i);
  speculating_.speculation_rows = 16;
  run(tiny_.model, many, speculating_);
  EXPECT_EQ(counted_.proposed_tokens, 0);
  EXPECT_EQ(counted_.steps, 40);
  many.resize(4);
  run(tiny_.model, many, speculating_);
  EXPECT_LE(counted_.steps, 11) << "16 rows for 4: three more each";
}

TEST_F(ServiceSpeculation, LogProbsAreTheOnesThatScoringComputes) {
  expect_scored(tiny_.model, requests_, run(tiny_.model, requests_, speculating_));
}

TEST_F(ServiceSpeculation, NegativeLimitsAreNamed) {
  speculating_.speculation_tokens = -1;
  try {
    Service(tiny_.model, speculating_);
    ADD_FAILURE() << "accepted";
  } catch (const base::InputError& error) {
    EXPECT_STREQ(error.what(), "[generate.speculation_tokens] expected at least 0, got -1");
  }
}

}  // namespace
}  // namespace collimate::generate
