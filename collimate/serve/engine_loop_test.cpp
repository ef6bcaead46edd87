#include "collimate/serve/engine_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <thread>

#include "collimate/base/at.h"
#include "collimate/batch/standard_keys.h"
#include "tests/support/generate/tiny_service.h"

namespace collimate::serve {
namespace {

using generate::Finish;
using testing::Each;
using testing::HasSubstr;

// A test that waits so long has failed.
base::Deadline soon() { return base::Deadline::after(600); }

struct Answer {
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;
  Finish finish = Finish::kRunning;
};

// All choices to their ends.
std::vector<Answer> read_all(Channel& channel) {
  std::vector<Answer> answers(static_cast<size_t>(channel.choices()));
  const auto running = [](const Answer& answer) { return answer.finish == Finish::kRunning; };
  while (std::any_of(answers.begin(), answers.end(), running)) {
    const auto pieces = channel.take(soon());
    if (pieces.empty()) throw base::RunError("no piece in time");
    for (const Piece& piece : pieces) {
      Answer& answer = base::at(answers, piece.choice);
      answer.tokens.insert(answer.tokens.end(), piece.tokens.begin(), piece.tokens.end());
      answer.log_probs.insert(answer.log_probs.end(), piece.log_probs.begin(), piece.log_probs.end());
      answer.finish = piece.finish;
    }
  }
  return answers;
}

Work work_of(int64_t max_tokens, std::vector<std::vector<int32_t>> prompts = {{3, 4, 5}}) {
  Work work{.prompts = std::move(prompts)};
  work.sampling.max_tokens = max_tokens;
  work.sampling.ignore_eos = true;
  return work;
}

// The message of an E; anything else is not one. Nothing is let through: a loop would wait for a gate that is shut.
constexpr const char* kNothing = "no such thing was thrown";
template <class E>
std::string thrown(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception&) {
  }
  return kNothing;
}

// Holds the engine between two steps, in the scoring of its work's prompt, until it is opened.
class Gate {
 public:
  Work work() const {
    Work work = work_of(1);
    work.prompt_log_probs = true;
    return work;
  }
  void wait() const { opened_.wait(); }
  void open() { open_.set_value(); }

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
};

class EngineLoopTest : public testing::Test {
 protected:
  // Each prompt is scored in `pieces`, at the first of which the gate holds; 0: it never ends.
  Engine engine(const Gate* gate = nullptr, int pieces = 1) {
    const auto score = [gate, pieces](std::span<const int32_t> ids, const generate::SamplingParams&) -> ScoreStep {
      return [gate, left = pieces, length = ids.size()]() mutable -> std::optional<generate::PromptLogProbs> {
        if (gate != nullptr) gate->wait();
        if (--left != 0) return std::nullopt;
        return generate::PromptLogProbs{.log_probs = std::vector<float>(length, -1.F), .top_log_probs = {}};
      };
    };
    return {.service = std::make_unique<generate::Service>(tiny_.model, generate::ServiceOptions{}),
            .score = score,
            .begin = {}};
  }

  generate::testing_support::TinyModel tiny_;
};

TEST_F(EngineLoopTest, GivesWhatTheServiceAloneGives) {
  Work work = work_of(20, {{3, 4, 5}, {6, 7}});
  work.choices_per_prompt = 2;
  work.sampling.temperature = 0;
  EngineLoop loop(engine(), {}, 1);
  const auto answers = read_all(*loop.submit(work));
  const std::vector<generate::testing_support::Request> alone = {{1, 1, {3, 4, 5}, work.sampling},
                                                                 {2, 2, {6, 7}, work.sampling}};
  auto expected = generate::testing_support::run_all(tiny_.model, alone, {});
  ASSERT_EQ(answers.size(), 4U);
  for (size_t choice = 0; choice < 4; ++choice) {
    EXPECT_EQ(answers[choice].tokens, expected[1 + static_cast<int64_t>(choice) / 2].tokens);
    EXPECT_EQ(answers[choice].log_probs.size(), 20U);
    EXPECT_EQ(answers[choice].finish, Finish::kLength);
  }
}

// As services over ranks are, one of which has failed.
class Lost final : public generate::Completer {
 public:
  void submit(const Batch&) override {}
  bool step() override { throw base::RunError("rank 1 is gone"); }
  std::span<const generate::Emission> take() override { return {}; }
  void cancel(std::span<const int64_t>) override { throw base::RunError("rank 1 is gone"); }
  generate::ServiceStats stats() const override { return {}; }
};

TEST_F(EngineLoopTest, AServiceThatCannotGoOnEndsTheEngine) {
  EngineLoop loop({.service = std::make_unique<Lost>(), .score = {}, .begin = {}}, {}, 1);
  const auto waiting = loop.submit(work_of(5));
  EXPECT_EQ(thrown<base::RunError>([&] { read_all(*waiting); }), "rank 1 is gone");
  while (loop.status().broken.empty()) std::this_thread::yield();
  EXPECT_EQ(loop.status().broken, "rank 1 is gone");
  EXPECT_EQ(thrown<base::RunError>([&] { loop.submit(work_of(1)); }), "rank 1 is gone");
}

// No token can go on with what any request has to be.
class Stuck final : public generate::Completer {
 public:
  void submit(const Batch& requests) override {
    for (int64_t row = 0; row < requests.rows(); ++row)
      ends_.push_back({.uid = requests.get(batch::kUid, row), .finish = Finish::kError});
  }
  bool step() override { return false; }
  std::span<const generate::Emission> take() override {
    taken_ = std::exchange(ends_, {});
    return taken_;
  }
  void cancel(std::span<const int64_t>) override {}
  generate::ServiceStats stats() const override { return {}; }

 private:
  std::vector<generate::Emission> ends_, taken_;
};

TEST_F(EngineLoopTest, ACompletionThatCannotGoOnHasNotEndedByItself) {
  EngineLoop loop({.service = std::make_unique<Stuck>(), .score = {}, .begin = {}}, {}, 1);
  EXPECT_EQ(read_all(*loop.submit(work_of(5)))[0].finish, Finish::kError);
  EXPECT_EQ(loop.status().finished, 0);
  EXPECT_EQ(loop.status().cancelled, 1);
}

TEST_F(EngineLoopTest, ASeedDecidesAndNothingElseDoes) {
  Work seeded = work_of(30);
  seeded.choices_per_prompt = 3;
  seeded.seed = 42;
  std::vector<Answer> first, again;
  {
    EngineLoop loop(engine(), {}, 1);
    first = read_all(*loop.submit(seeded));
  }
  EngineLoop loop(engine(), {}, 2);
  const auto other = loop.submit(work_of(40));
  const auto same = loop.submit(seeded), twin = loop.submit(seeded);  // the twin waits for the first of them
  again = read_all(*same);
  const auto twins = read_all(*twin);
  for (size_t choice = 0; choice < 3; ++choice) {
    EXPECT_EQ(first[choice].tokens, again[choice].tokens);
    EXPECT_EQ(first[choice].tokens, twins[choice].tokens);
  }
  EXPECT_NE(first[0].tokens, first[1].tokens);
  seeded.seed = 43;
  EXPECT_NE(read_all(*loop.submit(seeded))[0].tokens, first[0].tokens);
  read_all(*other);
}

TEST_F(EngineLoopTest, ASeededPromptGetsTheSameBesideOthers) {
  EngineLoop loop(engine(), {}, 1);
  Work alone = work_of(30, {{6, 7}});
  alone.seed = 42;
  Work together = work_of(30, {{3, 4, 5}, {6, 7}, {6, 7}});
  together.seed = 42;
  const auto expected = read_all(*loop.submit(alone)), got = read_all(*loop.submit(together));
  EXPECT_EQ(got[1].tokens, expected[0].tokens);
  EXPECT_NE(got[2].tokens, expected[0].tokens);
}

TEST_F(EngineLoopTest, WithoutASeedRequestsDiffer) {
  EngineLoop loop(engine(), {}, 1);
  const auto a = loop.submit(work_of(30)), b = loop.submit(work_of(30));
  EXPECT_NE(read_all(*a)[0].tokens, read_all(*b)[0].tokens);
}

TEST_F(EngineLoopTest, TakesNoMoreThanItsLimitAndThenAgain) {
  Gate gate;
  EngineLoop loop(engine(&gate), {.requests = 2}, 1);
  const auto a = loop.submit(gate.work()), b = loop.submit(work_of(100));
  EXPECT_THAT(thrown<OverloadedError>([&] { loop.submit(work_of(1)); }), HasSubstr("at most 2"));
  gate.open();
  read_all(*a);
  read_all(*b);
  const auto c = loop.submit(work_of(1));  // at once
  EXPECT_EQ(read_all(*c)[0].tokens.size(), 1U);
  EXPECT_EQ(loop.status().finished, 3);
}

TEST_F(EngineLoopTest, SaysWhyItRefusesARequest) {
  EngineLoop loop(engine(), {}, 1);
  const auto refused = [&](const Work& work) {
    return thrown<base::InputError>([&] { loop.submit(work)->wait_accepted(soon()); });
  };
  EXPECT_THAT(refused(work_of(5, {{}})), HasSubstr("at least 1 token"));
  EXPECT_THAT(refused(work_of(5, {{61}})), HasSubstr("token ids in [0, 61)"));
  EXPECT_THAT(refused(work_of(5, {{3}, std::vector<int32_t>(160, 3)})), HasSubstr("at most 159 tokens"));
  EXPECT_EQ(read_all(*loop.submit(work_of(2)))[0].tokens.size(), 2U);
  EXPECT_EQ(loop.status().in_flight, 0);
}

TEST_F(EngineLoopTest, CancelsWhatNobodyReads) {
  Gate gate;
  EngineLoop loop(engine(&gate), {}, 1);
  const auto first = loop.submit(gate.work());
  Work work = work_of(150);
  work.choices_per_prompt = 3;
  const auto some = loop.submit(work), none = loop.submit(work);
  some->drop(0);
  none->drop_all();
  gate.open();
  std::vector<Piece> pieces = some->take(soon());
  EXPECT_FALSE(pieces.empty());
  for (const Piece& piece : pieces) EXPECT_NE(piece.choice, 0);
  EXPECT_EQ(loop.drain(soon()), 0);
  EXPECT_EQ(loop.status().cancelled, 4);
  EXPECT_EQ(loop.status().finished, 3);
}

TEST_F(EngineLoopTest, AReaderThatLetsTooMuchLieIsCutOffAndStallsNobody) {
  EngineLoop loop(engine(), {.buffer_tokens = 16}, 1);
  const auto slow = loop.submit(work_of(150));
  EXPECT_EQ(read_all(*loop.submit(work_of(10)))[0].tokens.size(), 10U);
  EXPECT_EQ(loop.drain(soon()), 0);
  EXPECT_THAT(thrown<base::RunError>([&] { slow->take(soon()); }), HasSubstr("at most 16 tokens unread"));
}

TEST_F(EngineLoopTest, AWholeAnswerMayLieUnread) {
  EngineLoop loop(engine(), {.buffer_tokens = 16}, 1);
  Work work = work_of(150);
  work.whole_answer = true;
  const auto channel = loop.submit(work);
  EXPECT_EQ(loop.drain(soon()), 0);
  EXPECT_EQ(read_all(*channel)[0].tokens.size(), 150U);
}

TEST_F(EngineLoopTest, DrainingFinishesWhatRunsAndTakesNothingNew) {
  EngineLoop loop(engine(), {}, 1);
  const auto running = loop.submit(work_of(100));
  EXPECT_EQ(loop.drain(soon()), 0);
  EXPECT_EQ(read_all(*running)[0].tokens.size(), 100U);
  EXPECT_THAT(thrown<DrainingError>([&] { loop.submit(work_of(1)); }), HasSubstr("shut"));
}

TEST_F(EngineLoopTest, AtTheDeadlineTheRestIsCutOff) {
  Gate gate;
  EngineLoop loop(engine(&gate), {}, 1);
  const auto first = loop.submit(gate.work()), second = loop.submit(work_of(100));
  std::thread release([&] {
    Work too_many = work_of(1);  // refused as that, until the loop drains
    too_many.choices_per_prompt = 1000;
    while (thrown<DrainingError>([&] { loop.submit(too_many); }) == kNothing) std::this_thread::yield();
    gate.open();
  });
  EXPECT_EQ(loop.drain(base::Deadline::after(0)), 2);
  release.join();
  for (const auto& channel : {first, second})
    EXPECT_THAT(thrown<DrainingError>([&] { read_all(*channel); }), HasSubstr("shut"));
}

TEST_F(EngineLoopTest, ScoresPromptsAndMayDrawNothing) {
  EngineLoop loop(engine(), {}, 1);
  Work work = work_of(0, {{3, 4}, {5, 6, 7}});
  work.prompt_log_probs = true;
  const auto channel = loop.submit(work);
  ASSERT_TRUE(channel->wait_accepted(soon()));
  ASSERT_EQ(channel->prompt_log_probs().size(), 2U);
  EXPECT_THAT(channel->prompt_log_probs()[1].log_probs, Each(-1.F));
  EXPECT_EQ(channel->prompt_log_probs()[1].log_probs.size(), 3U);
  for (const Answer& answer : read_all(*channel)) {
    EXPECT_TRUE(answer.tokens.empty());
    EXPECT_EQ(answer.finish, Finish::kLength);
  }
}

TEST_F(EngineLoopTest, AFailedStepFailsWhatIsInFlightAndNothingLater) {
  EngineLoop loop(engine(), {}, 1);
  read_all(*loop.submit(work_of(1)));
  tiny_.weights->initialize(2, 0.3F);  // the service was not told, and refuses to go on
  const std::string first = thrown<base::RunError>([&] { read_all(*loop.submit(work_of(5))); });
  EXPECT_THAT(first, HasSubstr("weights of version"));
  EXPECT_EQ(loop.status().failures, 1);
  EXPECT_EQ(loop.status().in_flight, 0);
  EXPECT_THAT(thrown<base::RunError>([&] { read_all(*loop.submit(work_of(5))); }), HasSubstr("weights of version"));
}

TEST_F(EngineLoopTest, WhenTheThreadCannotBeginEverybodyIsTold) {
  Engine parts = engine();
  parts.begin = [] { throw base::RunError("no such device"); };
  EngineLoop loop(std::move(parts), {}, 1);
  EXPECT_THAT(thrown<base::RunError>([&] { loop.submit(work_of(5))->wait_accepted(soon()); }),
              HasSubstr("no such device"));
}

}  // namespace
}  // namespace collimate::serve
