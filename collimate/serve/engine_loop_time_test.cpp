#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>

#include "collimate/serve/engine_loop.h"
#include "tests/support/generate/tiny_service.h"

namespace collimate::serve {
namespace {

using generate::Finish;
using testing::Each;
using testing::HasSubstr;

// A test that waits so long has failed.
base::Deadline patience() { return base::Deadline::after(600); }

// The tokens of a request's only choice, and its end.
std::pair<size_t, Finish> read_one(Channel& channel) {
  size_t tokens = 0;
  while (true) {
    const auto pieces = channel.take(patience());
    if (pieces.empty()) throw base::RunError("no piece in time");
    tokens += pieces[0].tokens.size();
    if (pieces[0].finish != Finish::kRunning) return {tokens, pieces[0].finish};
  }
}

Work one_choice(int64_t max_tokens, std::vector<int32_t> prompt, double timeout = 0) {
  Work work{.prompts = {std::move(prompt)}};
  work.sampling.max_tokens = max_tokens;
  work.sampling.ignore_eos = true;
  work.sampling.timeout_seconds = timeout;
  return work;
}
Work scored_choice(int64_t max_tokens, std::vector<int32_t> prompt, double timeout = 0) {
  Work work = one_choice(max_tokens, std::move(prompt), timeout);
  work.prompt_log_probs = true;
  return work;
}

// An engine whose clock the test sets. A prompt is scored in as many pieces as its first token's id; one that begins
// with 0 never ends. The first prompt that is scored waits until open().
class EngineLoopTimeTest : public testing::Test {
 protected:
  Engine engine(std::function<double()> service_clock = {}) {
    Engine made;
    generate::ServiceOptions options;
    options.now_seconds = service_clock ? std::move(service_clock) : [this] { return now_.load(); };
    made.service = std::make_unique<generate::Service>(tiny_.model, options);
    made.now_seconds = [this] { return now_.load(); };
    made.score = [this, service = made.service.get()](std::span<const int32_t> ids, const generate::SamplingParams&) {
      const auto piece = [this, service, left = ids[0],
                          length = ids.size()]() mutable -> std::optional<generate::PromptLogProbs> {
        std::call_once(first_, [this] { scored_.set_value(); });
        opened_.wait();
        steps_.push_back(service->stats().steps);
        if (--left != 0) return std::nullopt;
        return generate::PromptLogProbs{.log_probs = std::vector<float>(length, -2.F), .top_log_probs = {}};
      };
      return ScoreStep(piece);
    };
    return made;
  }
  void open() { open_.set_value(); }
  // Waits until the engine's thread scores a prompt, and so takes nothing else before open().
  void wait_for_scoring() { scored_.get_future().wait(); }

  generate::testing_support::TinyModel tiny_;
  std::atomic<double> now_ = 1;
  std::promise<void> open_, scored_;
  std::once_flag first_;
  std::shared_future<void> opened_ = open_.get_future().share();
  std::vector<int64_t> steps_;  // of the service, before each piece; the engine's thread writes
};

TEST_F(EngineLoopTimeTest, BetweenThePiecesOfAPromptOthersGetTheirTokens) {
  EngineLoop loop(engine(), {}, 1);
  const auto held = loop.submit(scored_choice(1, {1}));
  const auto other = loop.submit(one_choice(150, {6, 7}));
  Work two_prompts = scored_choice(1, {4, 5, 6});
  two_prompts.prompts.push_back({5, 5});
  const auto scored = loop.submit(two_prompts);
  open();
  ASSERT_TRUE(scored->wait_accepted(patience()));
  ASSERT_EQ(steps_.size(), 1U + 4U + 5U);
  for (size_t piece = 2; piece < steps_.size(); ++piece) EXPECT_EQ(steps_[piece], steps_[piece - 1] + 1);
  ASSERT_EQ(scored->prompt_log_probs().size(), 2U);
  EXPECT_EQ(scored->prompt_log_probs()[0].log_probs.size(), 3U);
  EXPECT_THAT(scored->prompt_log_probs()[1].log_probs, Each(-2.F));
  EXPECT_EQ(read_one(*other).first, 150U);
  EXPECT_EQ(read_one(*held).first, 1U);
}

TEST_F(EngineLoopTimeTest, ATimeoutEndsACompletionWithWhatItHas) {
  EngineLoop loop(engine([clock = 0.0]() mutable { return clock += 1; }), {}, 1);
  // Submitted at 1, it ends at 21; the steps are at 2 to 20.
  const auto [tokens, finish] = read_one(*loop.submit(one_choice(150, {6, 7}, 20)));
  EXPECT_EQ(finish, Finish::kTimeout);
  EXPECT_EQ(tokens, 19U);
  EXPECT_EQ(loop.status().expired, 1);
  EXPECT_EQ(loop.status().finished, 0);
}

TEST_F(EngineLoopTimeTest, TheTimeInTheQueueCounts) {
  EngineLoop loop(engine(), {}, 1);
  const auto held = loop.submit(scored_choice(1, {1}));
  wait_for_scoring();
  const auto late = loop.submit(one_choice(150, {6, 7}, 10)), early = loop.submit(one_choice(150, {6, 7}, 12));
  now_ = 11;
  open();
  EXPECT_EQ(read_one(*late), std::pair(size_t{0}, Finish::kTimeout));
  EXPECT_EQ(read_one(*early), std::pair(size_t{150}, Finish::kLength));
  EXPECT_EQ(read_one(*held).second, Finish::kLength);
}

TEST_F(EngineLoopTimeTest, WhatIsStillScoredFailsAtItsTimeoutOrWithoutAReader) {
  EngineLoop loop(engine(), {}, 1);
  open();
  const auto late = loop.submit(scored_choice(5, {0}, 10)), left = loop.submit(scored_choice(5, {0}));
  now_ = 11;
  try {
    late->wait_accepted(patience());
    ADD_FAILURE() << "accepted";
  } catch (const ExpiredError& error) {
    EXPECT_THAT(error.what(), HasSubstr("within its timeout"));
  }
  left->drop_all();
  EXPECT_EQ(loop.drain(patience()), 0);
  EXPECT_EQ(loop.status().expired, 1);
  EXPECT_EQ(loop.status().cancelled, 1);
}

TEST_F(EngineLoopTimeTest, TheTimeBetweenTokensIsCounted) {
  EngineLoop loop(engine(), {}, 1);
  read_one(*loop.submit(one_choice(20, {6, 7})));
  read_one(*loop.submit(one_choice(1, {6, 7})));  // when it ends, what the first one gave is published
  EXPECT_THAT(loop.status().between_tokens.text("a", "b"), HasSubstr("a_count 19\n"));
}

}  // namespace
}  // namespace collimate::serve
