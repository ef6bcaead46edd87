#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "collimate/generate/ngram_proposer.h"

namespace collimate::generate {

// Decides how many tokens one sequence guesses ahead, by how many guessed tokens held (were drawn) last time: that
// number plus one, or twice the guess if it held as a whole. After a guess of which nothing held, there is no guess for
// 1, 3, 7, 15, then always 31 steps. So a sequence whose guesses hold soon reaches the limit, one whose guesses hold
// now and then has a row or two more in a step, and one whose guesses never hold has one row more in one step of 32.
// The length changes the cost of a step, never which token is drawn.
class GuessLength {
 public:
  // Returns how many tokens to guess in this step, at most `most`; 0 while guesses pause. Call it once a step.
  int64_t next(int64_t most) {
    if (wait_ == 0) return std::min(length_, most);
    --wait_;
    return 0;
  }
  // Notes that the first `held` of `guessed` > 0 tokens were drawn.
  void observe(int64_t guessed, int64_t held) {
    length_ = held == guessed ? std::max(length_, 2 * guessed) : held + 1;
    pause_ = held > 0 ? 0 : std::min<int64_t>(2 * pause_ + 1, kLongestPause);
    wait_ = pause_;
  }

 private:
  static constexpr int64_t kFirst = 4, kLongestPause = 31;
  int64_t length_ = kFirst;
  int64_t pause_ = 0;
  int64_t wait_ = 0;
};

// A sequence's guesses at its own continuation.
struct Speculation {
  NgramProposer proposer;
  GuessLength length;
  std::vector<int32_t> proposed;  // for the next step only

  void reset() {
    proposer.reset();
    length = {};
    proposed.clear();
  }
};

}  // namespace collimate::generate
