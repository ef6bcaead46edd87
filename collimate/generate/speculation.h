#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "collimate/generate/ngram_proposer.h"

namespace collimate::generate {

// How far one sequence guesses ahead. It follows what held: as many tokens as held last time and one more, twice as
// many after a guess that held as a whole; after a guess of which nothing held, no guess for 1, 3, 7, 15, then always
// 31 steps. So where guesses hold it soon reaches the limit, where they hold now and then a step has a row or two more,
// and where they never hold one step in 32 has one row more. Decides what a step costs, never which token is drawn.
class GuessLength {
 public:
  // Tokens to guess in this step, at most `most`; 0 while it waits. One call a step.
  int64_t next(int64_t most) {
    if (wait_ == 0) return std::min(length_, most);
    --wait_;
    return 0;
  }
  // Notes that of `guessed` > 0 tokens the first `held` were drawn.
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
