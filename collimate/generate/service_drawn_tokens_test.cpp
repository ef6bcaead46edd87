#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "collimate/base/error.h"
#include "tests/support/base/error_of.h"
#include "tests/support/generate/tiny_service.h"

namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only
using testing::HasSubstr;

// Requests that stop after some tokens and go on behind them in another service.
class DrawnTokens : public WithMixedRequests<30> {
 protected:
  // Draws each request up to `limit` tokens, then what is left of those that this cut, in a service of its own.
  Results drawn_in_two(int64_t limit) {
    std::vector<Request> first = requests_;
    for (Request& request : first) {
      request.params.max_tokens = std::min(request.params.max_tokens, limit);
      request.params.min_tokens = std::min(request.params.min_tokens, request.params.max_tokens);
    }
    Results results = run_all(tiny_.model, first, options_);
    std::vector<Request> rest;
    std::vector<int64_t> drawn;
    for (const Request& request : requests_) {
      Result& begun = results.at(request.uid);
      const auto tokens = static_cast<int64_t>(begun.tokens.size());
      if (begun.finish != Finish::kLength || tokens >= request.params.max_tokens) continue;
      rest.push_back(request);
      rest.back().prompt.insert(rest.back().prompt.end(), begun.tokens.begin(), begun.tokens.end());
      drawn.push_back(tokens);
      begun.finish = Finish::kRunning;  // collect() adds what comes
    }
    continued_ = rest.size();
    Batch batch = to_batch(rest);
    batch.set(kDrawnTokens, drawn);
    Service service(tiny_.model, options_);
    service.submit(batch);
    drain(service, results);
    return results;
  }
  std::string refusal(int64_t drawn, int64_t max_tokens = 12) {
    const Request request{.uid = 1, .prompt_uid = 1, .prompt = {3, 4, 5, 6}, .params = {.max_tokens = max_tokens}};
    Batch batch = to_batch({&request, 1});
    batch.set(kDrawnTokens, std::vector<int64_t>{drawn});
    Service service(tiny_.model, options_);
    return base::message_of([&] { service.submit(batch); });
  }

  size_t continued_ = 0;
};

// The penalties, stop strings, forms and draws of a request see its completion as if it had been drawn in one go.
TEST_F(DrawnTokens, TheRestHasTheBitsOfTheWhole) {
  for (const int64_t limit : {1, 5, 20}) {
    const Results results = drawn_in_two(limit);
    EXPECT_GT(continued_, 3U) << limit;
    for (const Request& request : requests_) EXPECT_EQ(results.at(request.uid), alone().at(request.uid)) << request.uid;
  }
}

TEST_F(DrawnTokens, MustStandBehindAPromptAndLeaveRoom) {
  EXPECT_EQ(refusal(0), "");
  EXPECT_EQ(refusal(3), "");
  EXPECT_EQ(refusal(4), "[generate.submit, row 0] expected 0 to 3 drawn tokens behind a prompt, got 4");
  EXPECT_THAT(refusal(-1), HasSubstr("expected 0 to 3 drawn tokens behind a prompt, got -1"));
  EXPECT_THAT(refusal(std::numeric_limits<int64_t>::max()), HasSubstr("0 to 3 drawn tokens"));
  EXPECT_EQ(refusal(2, 2),
            "[generate.submit, row 0] expected fewer than 2 drawn tokens, got 2; try a larger max_tokens");
  EXPECT_EQ(refusal(2, 3), "");
  options_.max_sequence_tokens = 5;
  EXPECT_EQ(refusal(3), "");
  options_.max_sequence_tokens = 4;
  EXPECT_THAT(refusal(2), HasSubstr("fewer than 2 drawn tokens"));
}

}  // namespace
}  // namespace collimate::generate
