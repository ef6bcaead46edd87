#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collimate/tensor/ops/top_k.h"

namespace collimate::generate {

// Says when a search that has as many completions as beams ends, though beams could go on: at once (kYes), when no beam
// would beat the worst completion if it ended now (kNo), or when none would at the length that suits it best (kNever).
enum class EarlyStopping : uint8_t { kNo, kYes, kNever };

// Parameters of a search. Names and meaning are those of transformers' GenerationConfig.
struct BeamParams {
  int64_t beams = 1;
  double length_penalty = 1.0;  // a completion's score is the sum of its tokens' scores / its length to this power
  EarlyStopping early = EarlyStopping::kNo;
};

// The search for the completions of one prompt. It keeps the completions that have ended and the beams that go on, and
// chooses both by the likely tokens after each beam. The rules are those of transformers 5
// (GenerationMixin._beam_search). Plain data.
class Beams {
 public:
  struct Hypothesis {
    std::vector<int32_t> tokens;
    std::vector<float> log_probs;
    float score = 0;       // the sum of its tokens' scores, divided by length ^ length_penalty once it has ended
    bool by_text = false;  // a stop text ended it
  };

  // The likeliest tokens after one beam and their scores, which are log-probs after penalties, -infinity for a token
  // that may not follow. As in transformers, whose logits processors also act on log-probs, scores are not normalized
  // again.
  struct Likely {
    std::span<const tensor::TokenLogProb> top;
    std::span<const float> scores;  // as long as `top`
  };
  // Returns whether the token completes a stop text at the end of that beam.
  using EndsText = std::function<bool(size_t beam, int32_t token)>;

  // `end_ids` end a completion, and so does its length. `max_tokens` >= 1.
  Beams(BeamParams params, int64_t max_tokens, std::vector<int32_t> end_ids);

  // Returns how many of the likeliest tokens after each beam advance() needs.
  static int64_t width(int64_t beams, size_t end_ids);
  int64_t width() const { return width(params_.beams, end_ids_.size()); }

  // Advances the search by one token. `likely` has, for each live beam in order, the width() likeliest tokens after it,
  // or all if there are fewer. A beam that no token may follow is given up. Returns, for each beam that is live now,
  // the index of the former beam that it continues.
  std::vector<size_t> advance(std::span<const Likely> likely, const EndsText& ends_text);

  bool done() const { return done_; }
  std::span<const Hypothesis> live() const { return live_; }
  std::span<const Hypothesis> ended() const { return ended_; }  // the best first, at most as many as beams

 private:
  struct Candidate {
    size_t beam;
    tensor::TokenLogProb next;
    float score;
  };
  std::vector<Candidate> candidates(std::span<const Likely> likely) const;
  Hypothesis extended(const Candidate& candidate) const;
  void keep_ended(std::vector<Hypothesis> fresh);
  bool full() const { return static_cast<int64_t>(ended_.size()) == params_.beams; }
  float penalized(float sum, int64_t length) const;
  bool ends(int32_t token) const;
  bool may_improve() const;

  BeamParams params_;
  int64_t max_tokens_;
  std::vector<int32_t> end_ids_;
  int64_t length_ = 0;
  bool done_ = false;
  std::vector<Hypothesis> live_, ended_;
};

}  // namespace collimate::generate
