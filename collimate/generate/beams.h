#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collimate/tensor/ops/top_k.h"

namespace collimate::generate {

// When a search ends though beams could go on: kYes, with as many completions as it has beams; kNo, when no beam would
// beat the worst of them if it ended now; kNever, when none would at the length that suits it best.
enum class EarlyStopping : uint8_t { kNo, kYes, kNever };

// How completions are searched: names and meaning as in transformers' GenerationConfig.
struct BeamParams {
  int64_t beams = 1;
  double length_penalty = 1.0;  // a completion's score: the sum of its tokens' scores / its length to this power
  EarlyStopping early = EarlyStopping::kNo;
};

// The search of one prompt: which completions it has and which it goes on with, by what is likely after each. The rules
// are those of transformers 5 (GenerationMixin._beam_search). Plain data.
class Beams {
 public:
  struct Hypothesis {
    std::vector<int32_t> tokens;
    std::vector<float> log_probs;
    float score = 0;       // the sum of its tokens' scores; of an ended one, over its length to the penalty
    bool by_text = false;  // a stop text ended it
  };

  // Has what may follow one beam: its likeliest tokens by score, and the scores: log-probs after penalties, -infinity
  // where a token may not follow. transformers' logits processors act on log-probs too, and normalize nothing after.
  struct Likely {
    std::span<const tensor::TokenLogProb> top;
    std::span<const float> scores;  // as long as `top`
  };
  // Does the token complete a stop text behind that beam?
  using EndsText = std::function<bool(size_t beam, int32_t token)>;

  // `end_ids` end a completion, and so does its length. `max_tokens` >= 1.
  Beams(BeamParams params, int64_t max_tokens, std::vector<int32_t> end_ids);

  // So many of the likeliest tokens after each beam decide how the search goes on.
  static int64_t width(int64_t beams, size_t end_ids);
  int64_t width() const { return width(params_.beams, end_ids_.size()); }

  // Goes on by a token: `likely` has for each live beam, in order, its width() likeliest tokens, or all that there are.
  // A beam that no token may follow is given up. Gives the beam that each live one comes from.
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
