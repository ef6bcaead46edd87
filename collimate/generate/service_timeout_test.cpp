#include <gtest/gtest.h>

#include "collimate/generate/engine.h"
#include "tests/support/generate/tiny_service.h"

namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only

// A service whose clock is `now_`.
class ServiceTimeoutTest : public testing::Test {
 protected:
  ServiceTimeoutTest() {
    options_.seed = 77;
    options_.prefix_cache = false;
    options_.now_seconds = [this] {
      ++reads_;
      return now_;
    };
  }

  // `timeout` 0: none.
  static Request request(int64_t uid, double timeout, int64_t max_tokens = 100) {
    Request made{.uid = uid, .prompt_uid = uid, .prompt = std::vector<int32_t>(20, static_cast<int32_t>(uid))};
    made.params.max_tokens = max_tokens;
    made.params.ignore_eos = true;
    made.params.timeout_seconds = timeout;
    return made;
  }
  static std::vector<int32_t> first(const Result& result, size_t count) {
    return {result.tokens.begin(), result.tokens.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  Result alone(const Request& of) {
    Request free = of;
    free.params.timeout_seconds = 0;
    return run_all(tiny_.model, {&free, 1}, options_).at(of.uid);
  }

  TinyModel tiny_;
  ServiceOptions options_;
  double now_ = 0;
  int reads_ = 0;
};

TEST_F(ServiceTimeoutTest, ARequestEndsWithWhatItHasAndItsBlocksAreFree) {
  const std::vector<Request> requests = {request(3, 10), request(4, 0)};
  Service service(tiny_.model, options_);
  service.submit(to_batch(requests));
  Results results;
  for (int step = 0; step < 5; ++step) service.step();
  now_ = 9.99;
  service.step();
  EXPECT_EQ(service.running(), 2);
  now_ = 10;
  ASSERT_TRUE(service.step());
  EXPECT_EQ(service.running(), 1);
  EXPECT_EQ(service.stats().blocks_used, 2) << "20 + 6 tokens of the other one";
  collect(service, results);
  EXPECT_EQ(results.at(3).finish, Finish::kTimeout);
  EXPECT_EQ(results.at(3).tokens, first(alone(requests[0]), 6));
  EXPECT_EQ(results.at(3).log_prob_bits.size(), 6U);
  drain(service, results);
  EXPECT_EQ(results.at(4), alone(requests[1]));
  EXPECT_EQ(service.stats().blocks_used, 0);
}

TEST_F(ServiceTimeoutTest, OneThatWaitsEndsToo) {
  options_.max_batch_sequences = 1;
  const std::vector<Request> requests = {request(3, 0), request(4, 5), request(5, 0)};
  Service service(tiny_.model, options_);
  service.submit(to_batch(requests));
  Results results;
  service.step();
  now_ = 6;
  drain(service, results);
  EXPECT_EQ(results.at(4).finish, Finish::kTimeout);
  EXPECT_TRUE(results.at(4).tokens.empty());
  for (const size_t other : {size_t{0}, size_t{2}}) EXPECT_EQ(results.at(requests[other].uid), alone(requests[other]));

  // With nothing else to do the end is a step's work: who takes after each step sees it.
  service.submit(to_batch(std::span(requests).subspan(1, 1)));
  now_ = 60;
  EXPECT_TRUE(service.step());
  ASSERT_EQ(service.take().size(), 1U);
  EXPECT_FALSE(service.step());
}

TEST_F(ServiceTimeoutTest, APreemptedOneGivesWhatItHad) {
  options_.cache_blocks = 9;
  const std::vector<Request> requests = {request(3, 0), request(4, 5)};
  Service service(tiny_.model, options_);
  service.submit(to_batch(requests));
  while (service.stats().preemptions == 0) ASSERT_TRUE(service.step());
  ASSERT_EQ(service.stats().waiting, 1);
  now_ = 5;
  service.step();
  Results results;
  collect(service, results);
  EXPECT_EQ(results.at(4).finish, Finish::kTimeout);
  ASSERT_GT(results.at(4).tokens.size(), 10U);
  EXPECT_EQ(results.at(4).tokens, first(alone(requests[1]), results.at(4).tokens.size()));
  drain(service, results);
  EXPECT_EQ(results.at(3), alone(requests[0]));
}

TEST_F(ServiceTimeoutTest, WithoutATimeoutNoClockIsRead) {
  auto requests = random_requests(6, 2);
  const Results free = run_all(tiny_.model, requests, options_);
  EXPECT_EQ(reads_, 0);
  for (Request& one : requests) one.params.timeout_seconds = 1e6;
  EXPECT_EQ(run_all(tiny_.model, requests, options_), free);
  EXPECT_GT(reads_, 0);
}

TEST_F(ServiceTimeoutTest, TheTimeLeftIsSaved) {
  const Request timed = request(3, 10);
  base::MemoryState state;
  Results results;
  {
    Service service(tiny_.model, options_);
    service.submit(to_batch({&timed, 1}));
    service.step();
    collect(service, results);
    now_ = 4;
    service.save(state);
  }
  now_ = 100;  // another machine's clock
  Service service(tiny_.model, options_);
  service.load(state);
  now_ = 105.9;
  service.step();
  EXPECT_EQ(service.running(), 1);
  now_ = 106.1;
  drain(service, results);
  EXPECT_EQ(results.at(3).finish, Finish::kTimeout);
  EXPECT_EQ(results.at(3).tokens, first(alone(timed), 2));
}

TEST_F(ServiceTimeoutTest, GenerateAllEndsEveryCompletion) {
  EngineOptions options{.service = options_};
  options.service.now_seconds = [this] { return now_ += 1; };
  const std::vector<std::vector<int32_t>> prompts = {{3, 4}, {5}, {6, 7, 8}};
  const auto completions = generate_all(tiny_.model, prompts, request(0, 8).params, options);
  ASSERT_EQ(completions.size(), 3U);
  for (const Completion& completion : completions) {
    EXPECT_EQ(completion.finish, Finish::kTimeout);
    EXPECT_GT(completion.tokens.size(), 0U);
    EXPECT_LT(completion.tokens.size(), 100U);
  }
}

}  // namespace
}  // namespace collimate::generate
