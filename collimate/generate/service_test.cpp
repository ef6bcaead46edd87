#include "collimate/generate/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "collimate/base/error.h"
#include "tests/support/generate/tiny_service.h"

namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only

class ServiceTest : public WithRequests {
 protected:
  ServiceTest() : WithRequests(random_requests(24, 3)) {}
};

TEST(Finish, IsSaidInOneWordAndSaysWhetherItCutACompletionOff) {
  const std::map<Finish, std::pair<std::string, bool>> all = {
      {Finish::kRunning, {"stop", false}}, {Finish::kEos, {"stop", false}},      {Finish::kStop, {"stop", false}},
      {Finish::kLength, {"length", true}}, {Finish::kCancelled, {"stop", true}}, {Finish::kTimeout, {"timeout", true}}};
  for (const auto& [finish, expected] : all) {
    EXPECT_EQ(finish_reason(finish), expected.first);
    EXPECT_EQ(cut_off(finish), expected.second);
  }
}

TEST_F(ServiceTest, RequestsEndAsAsked) {
  std::set<Finish> reasons;
  for (const Request& request : requests_) {
    const Result& result = alone().at(request.uid);
    const auto tokens = static_cast<int64_t>(result.tokens.size());
    ASSERT_LE(tokens, request.params.max_tokens);
    ASSERT_EQ(result.log_prob_bits.size(), result.tokens.size());
    ASSERT_EQ(result.versions.size(), result.tokens.size());
    EXPECT_TRUE(result.finish == Finish::kLength || result.tokens.back() == 2);
    EXPECT_TRUE(result.finish == Finish::kEos || tokens == request.params.max_tokens);
    EXPECT_TRUE(!request.params.ignore_eos || result.finish == Finish::kLength);
    reasons.insert(result.finish);
  }
  EXPECT_EQ(reasons, (std::set{Finish::kEos, Finish::kLength}));
}

TEST_F(ServiceTest, StopIdsAndTheSequenceLimitEndARequest) {
  Request request = requests_[0];
  request.params = {};
  request.params.ignore_eos = true;
  request.params.max_tokens = 60;
  const auto free = run_all(tiny_.model, {&request, 1}, options_).at(request.uid);
  request.params.stop_ids = {free.tokens[5]};
  const auto stopped = run_all(tiny_.model, {&request, 1}, options_).at(request.uid);
  const auto first = std::find(free.tokens.begin(), free.tokens.end(), free.tokens[5]) - free.tokens.begin();
  EXPECT_EQ(stopped.finish, Finish::kStop);
  EXPECT_EQ(stopped.tokens, std::vector<int32_t>(free.tokens.begin(), free.tokens.begin() + first + 1));

  request.params.stop_ids.clear();
  options_.max_sequence_tokens = static_cast<int64_t>(request.prompt.size()) + 7;
  const auto limited = run_all(tiny_.model, {&request, 1}, options_).at(request.uid);
  EXPECT_EQ(limited.finish, Finish::kLength);
  EXPECT_EQ(limited.tokens, std::vector<int32_t>(free.tokens.begin(), free.tokens.begin() + 7));
}

TEST_F(ServiceTest, SameBitsAloneAndInAnyBatch) {
  for (uint32_t trial = 0; trial < 12; ++trial) {
    const AnyBatch batch(trial, requests_, options_);
    EXPECT_EQ(run_all(tiny_.model, batch.order, batch.options), alone()) << "trial " << trial;
  }
}

TEST_F(ServiceTest, SameBitsWithPreemption) {
  options_.cache_blocks = 9;
  const Outcome outcome = run_counted(tiny_.model, requests_, options_);
  EXPECT_GT(outcome.stats.preemptions, 0);
  EXPECT_EQ(outcome.stats.blocks_used, 0);
  EXPECT_LE(outcome.stats.blocks_peak, 9);
  EXPECT_EQ(outcome.results, alone());
}

// Whoever came first goes on in every step.
TEST_F(ServiceTest, TheLatestIsPreempted) {
  options_.cache_blocks = 9;
  Service service(tiny_.model, options_);
  std::vector<Request> requests = random_requests(4, 1);
  for (Request& request : requests) {
    request.prompt.assign(20, static_cast<int32_t>(request.uid % 50));
    request.params.max_tokens = 60;
    request.params.ignore_eos = true;
  }
  service.submit(to_batch(requests));
  for (int token = 0; token < 60; ++token) {
    service.step();
    const auto emissions = service.take();
    EXPECT_TRUE(std::any_of(emissions.begin(), emissions.end(), [](const Emission& e) { return e.uid == 100; }))
        << token;
  }
  EXPECT_GT(service.stats().preemptions, 0);
}

TEST_F(ServiceTest, SameBitsWithAnyNumberOfThreads) {
  host::CorePool pool(3);
  TinyModel threaded(1, {&pool});
  options_.exec = {&pool};
  EXPECT_EQ(run_all(threaded.model, requests_, options_), alone());
}

TEST_F(ServiceTest, SameBitsOfOtherTypes) {
  for (const auto compute :
       {tensor::ComputeType::kBFloat16Amx, tensor::ComputeType::kBFloat16Dot, tensor::ComputeType::kInt8}) {
    TinyModel tiny(1, {}, compute);
    Results one_by_one;
    for (const Request& request : requests_) one_by_one.merge(run_all(tiny.model, {&request, 1}, options_));
    EXPECT_NE(one_by_one, alone());
    ServiceOptions crowded = options_;
    crowded.cache_blocks = 9;
    crowded.max_batch_tokens = 19;
    EXPECT_EQ(run_all(tiny.model, requests_, crowded), one_by_one);
  }
}

TEST_F(ServiceTest, SamplesOfOnePromptCostOnePrompt) {
  auto requests = random_requests(8, 8, 6);
  for (Request& request : requests) {
    request.prompt.assign(37, 5);
    request.params.max_tokens = 20;
    request.params.ignore_eos = true;
  }
  Service service(tiny_.model, options_);
  service.submit(to_batch(requests));
  ASSERT_TRUE(service.step());
  EXPECT_EQ(service.stats().prefill_tokens, 37);
  EXPECT_EQ(service.stats().shared_prompt_tokens, 7 * 37);
  EXPECT_EQ(service.stats().blocks_used, 2 + 8) << "two full blocks shared, a partial one each";
  Results results;
  drain(service, results);
  EXPECT_EQ(results.size(), 8U);
  EXPECT_GT(std::set<std::vector<int32_t>>({results[100].tokens, results[101].tokens, results[102].tokens}).size(), 1U);

  // The full blocks of a prompt are still known later on.
  for (Request& request : requests) request.uid += 1000;
  service.submit(to_batch(requests));
  drain(service, results);
  EXPECT_EQ(service.stats().prefill_tokens, 37 + 5);
}

TEST_F(ServiceTest, SubmitDuringDecode) {
  Service service(tiny_.model, options_);
  Results results;
  for (size_t i = 0; i < requests_.size(); i += 4) {
    service.submit(to_batch(std::span(requests_).subspan(i, 4)));
    for (int step = 0; step < 3 && service.step(); ++step) collect(service, results);
  }
  drain(service, results);
  EXPECT_EQ(results, alone());
  EXPECT_EQ(service.running(), 0);
}

TEST_F(ServiceTest, EmissionsWaitUntilTheyAreTaken) {
  Service service(tiny_.model, options_);
  service.submit(to_batch(requests_));
  while (service.step()) {
  }
  Results results;
  collect(service, results);
  EXPECT_EQ(results, alone());
  EXPECT_TRUE(service.take().empty());
}

TEST_F(ServiceTest, CancelEndsOnlyThose) {
  Service service(tiny_.model, options_);
  service.submit(to_batch(requests_));
  Results results;
  for (int step = 0; step < 4; ++step) service.step();
  const std::vector<int64_t> gone = {requests_[1].uid, requests_[7].uid, 999999};
  service.cancel(gone);
  drain(service, results);
  for (const Request& request : requests_) {
    const Result& whole = alone().at(request.uid);
    const Result& result = results.at(request.uid);
    const bool cancelled = std::find(gone.begin(), gone.end(), request.uid) != gone.end();
    if (!cancelled || whole.tokens.size() <= 4) {
      EXPECT_EQ(result, whole);
      continue;
    }
    EXPECT_EQ(result.finish, Finish::kCancelled);
    EXPECT_EQ(result.tokens, std::vector<int32_t>(whole.tokens.begin(), whole.tokens.begin() + 4));
  }
  EXPECT_EQ(service.stats().blocks_used, 0);
}

TEST_F(ServiceTest, PauseKeepsEverythingInPlace) {
  Service service(tiny_.model, options_);
  service.submit(to_batch(requests_));
  Results results;
  service.step();
  service.pause();
  EXPECT_FALSE(service.step());
  EXPECT_GT(service.running(), 0);
  service.resume();
  drain(service, results);
  EXPECT_EQ(results, alone());
}

TEST_F(ServiceTest, SaveInTheMiddleAndLoad) {
  options_.cache_blocks = 20;
  for (const int steps : {1, 5, 17}) {
    Results results;
    base::MemoryState state;
    save_after(steps, tiny_.model, requests_, options_, results, state);
    Service service(tiny_.model, options_);
    service.submit(to_batch(std::span(requests_).subspan(0, 1)));  // replaced by what is loaded
    service.load(state);
    EXPECT_GT(service.running(), 0);
    EXPECT_EQ(service.stats().steps, steps);
    drain(service, results);
    EXPECT_EQ(results, alone());
  }
  base::MemoryState state;
  Service(tiny_.model, options_).save(state);
  options_.seed = 78;
  Service other(tiny_.model, options_);
  EXPECT_THROW(other.load(state), base::InputError);
}

TEST_F(ServiceTest, ALoadThatIsRefusedChangesNothing) {
  Results saved, results;
  base::MemoryState state;
  save_after(2, tiny_.model, requests_, options_, saved, state);
  options_.cache_blocks = 2;
  Service small(tiny_.model, options_);
  Request own = requests_[0];
  own.prompt.resize(5);
  own.params.max_tokens = 20;
  own.params.ignore_eos = true;
  small.submit(to_batch({&own, 1}));
  for (int step = 0; step < 3; ++step) small.step();
  EXPECT_THROW(small.load(state), base::InputError);
  EXPECT_EQ(small.running(), 1);
  EXPECT_EQ(small.stats().steps, 3);
  drain(small, results);
  EXPECT_EQ(results, run_all(tiny_.model, {&own, 1}, options_));
}

// After an update in the middle, what follows is what the new weights say of the whole sequence: as if its beginning
// had been a prompt.
TEST_F(ServiceTest, UpdateRecomputesWhatOlderWeightsCached) {
  Service service(tiny_.model, options_);
  service.submit(to_batch(requests_));
  Results results;
  for (int step = 0; step < 6; ++step) {
    service.step();
    collect(service, results);
  }
  const Results before = results;
  tiny_.weights->initialize(2, 0.3F);
  tiny_.weights->commit();
  EXPECT_THROW(service.step(), base::GuardError);
  service.update(41);
  drain(service, results);

  int compared = 0;
  for (const Request& request : requests_) {
    const Result& old = before.at(request.uid);
    const Result& result = results.at(request.uid);
    if (old.finish != Finish::kRunning) continue;
    const size_t kept = old.tokens.size();
    Request rest = request;
    rest.prompt.insert(rest.prompt.end(), old.tokens.begin(), old.tokens.end());
    rest.params.max_tokens -= static_cast<int64_t>(kept);
    const Result fresh = run_all(tiny_.model, {&rest, 1}, options_).at(rest.uid);
    EXPECT_EQ(fresh.tokens, std::vector<int32_t>(result.tokens.begin() + kept, result.tokens.end()));
    EXPECT_EQ(fresh.log_prob_bits,
              std::vector<uint32_t>(result.log_prob_bits.begin() + kept, result.log_prob_bits.end()));
    for (size_t t = kept; t < result.versions.size(); ++t) EXPECT_EQ(result.versions[t], 41);
    EXPECT_NE(result.versions[kept - 1], 41);
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

// The caller may keep its number over a change of the weights; blocks of the old ones must not be found.
TEST_F(ServiceTest, UpdateUnderTheSameNumberForgetsThePrefixes) {
  Service service(tiny_.model, options_);
  service.submit(to_batch(requests_));
  Results results;
  drain(service, results);
  tiny_.weights->initialize(2, 0.3F);
  tiny_.weights->commit();
  service.update(service.version());
  service.submit(to_batch(requests_));
  Results again;
  drain(service, again);
  TinyModel other(2);
  for (const auto& [uid, result] : run_all(other.model, requests_, options_)) {
    EXPECT_EQ(again.at(uid).tokens, result.tokens);
    EXPECT_EQ(again.at(uid).log_prob_bits, result.log_prob_bits);
  }
  EXPECT_NE(again, results);
}

// Told of weights that are the ones it has, as at the beginning of each rollout, a service keeps what it knows.
TEST_F(ServiceTest, UpdateWithoutAChangeKeepsThePrefixes) {
  auto requests = random_requests(1, 1);
  requests[0].prompt.assign(37, 5);
  Service service(tiny_.model, options_);
  Results results;
  const auto prefilled = [&] {
    const int64_t before = service.stats().prefill_tokens;
    ++requests[0].uid;
    service.submit(to_batch(requests));
    drain(service, results);
    return service.stats().prefill_tokens - before;
  };
  EXPECT_EQ(prefilled(), 37);
  service.update(service.version());
  EXPECT_EQ(prefilled(), 5) << "two full blocks are known";
  service.update(service.version() + 1);
  EXPECT_EQ(prefilled(), 37);
}

TEST_F(ServiceTest, AStepThatFailsLeavesRequestsInPlace) {
  alone();
  Service service(tiny_.model, options_);
  const uint64_t version = service.version();
  service.submit(to_batch(requests_));
  Results results;
  for (int step = 0; step < 5; ++step) service.step();
  tiny_.weights->initialize(1, std::numeric_limits<float>::quiet_NaN());
  tiny_.weights->commit();
  service.update(version);
  EXPECT_THROW(service.step(), base::GuardError);
  EXPECT_EQ(service.stats().blocks_used, 0);
  tiny_.weights->initialize(1, 0.3F);
  tiny_.weights->commit();
  service.update(version);
  drain(service, results);
  EXPECT_EQ(results, alone());
}

TEST_F(ServiceTest, LogProbsAreTheOnesThatScoringComputes) { expect_scored(tiny_.model, requests_, alone()); }

TEST_F(ServiceTest, BadRequestsAreNamedAndNothingIsSubmitted) {
  Service service(tiny_.model, options_);
  const auto message = [&](auto&& change) {
    auto requests = random_requests(3, 1);
    change(requests[2]);
    try {
      service.submit(to_batch(requests));
    } catch (const base::InputError& error) {
      EXPECT_EQ(service.running(), 0);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message([](Request& r) { r.prompt.clear(); }),
            "[generate.submit, row 2] expected a prompt of at least 1 token, got none");
  EXPECT_EQ(message([](Request& r) {
              r.prompt = {3, 61};
            }),
            "[generate.submit, row 2] expected token ids in [0, 61), got 61");
  EXPECT_EQ(
      message([](Request& r) { r.prompt.assign(160, 1); }),
      "[generate.submit, row 2] expected a prompt of at most 159 tokens, got 160; try a shorter prompt: the model has "
      "no more positions");
  EXPECT_EQ(message([](Request& r) { r.uid = 100; }),
            "[generate.submit, row 2] expected uids that differ, got 100 twice");
  EXPECT_EQ(message([](Request& r) { r.params.max_tokens = 0; }),
            "[sampling.max_tokens] expected an integer >= 1, got 0");
  EXPECT_EQ(message([](Request&) {}), "accepted");
  EXPECT_THROW(service.submit(to_batch(random_requests(1, 1))), base::InputError) << "uid in flight";
  options_.cache_blocks = 1;
  Service small(tiny_.model, options_);
  EXPECT_THROW(small.submit(to_batch(requests_)), base::InputError);
  options_.max_sequence_tokens = 2;
  Service shorter(tiny_.model, options_);
  try {
    shorter.submit(to_batch(requests_));
    ADD_FAILURE() << "accepted";
  } catch (const base::InputError& error) {
    EXPECT_THAT(error.what(), testing::EndsWith("; try a shorter prompt or a larger max_sequence_tokens"));
  }
}

}  // namespace
}  // namespace collimate::generate
