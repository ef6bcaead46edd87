#include "collimate/generate/beams.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "collimate/base/at.h"

namespace collimate::generate {

Beams::Beams(BeamParams params, int64_t max_tokens, std::vector<int32_t> end_ids)
    : params_(params), max_tokens_(max_tokens), end_ids_(std::move(end_ids)), live_(1) {}

// So many tokens let as many beams go on as there are, even if the likeliest tokens after every beam end it.
int64_t Beams::width(int64_t beams, size_t end_ids) {
  return beams * std::max<int64_t>(2, 1 + static_cast<int64_t>(end_ids));
}

std::vector<size_t> Beams::advance(std::span<const Likely> likely, const EndsText& ends_text) {
  std::vector<Hypothesis> next, ended;
  std::vector<size_t> parents;
  ++length_;
  int64_t rank = 0;
  for (const Candidate& candidate : candidates(likely)) {
    const bool by_id = ends(candidate.next.token);
    const bool by_text = !by_id && ends_text(candidate.beam, candidate.next.token);
    if (length_ == max_tokens_ || by_id || by_text) {
      // Candidates beyond the first params_.beams are there only so that enough beams go on.
      if (rank < params_.beams) {
        ended.push_back(extended(candidate));
        ended.back().by_text = by_text;
      }
    } else if (static_cast<int64_t>(next.size()) < params_.beams) {
      next.push_back(extended(candidate));
      parents.push_back(candidate.beam);
    }
    ++rank;
  }
  keep_ended(std::move(ended));
  live_ = std::move(next);
  done_ = live_.empty() || (full() && (params_.early == EarlyStopping::kYes || !may_improve()));
  return parents;
}

// Returns the width() best tokens after all beams together, the best first. Of equal ones that of the earlier beam
// comes first, then the likelier one.
std::vector<Beams::Candidate> Beams::candidates(std::span<const Likely> likely) const {
  std::vector<Candidate> all;
  for (size_t beam = 0; beam < live_.size(); ++beam) {
    const Likely& after = base::at(likely, beam);
    for (size_t i = 0; i < after.top.size(); ++i) {
      const float score = live_[beam].score + base::at(after.scores, i);
      if (std::isfinite(score)) all.push_back({beam, base::at(after.top, i), score});
    }
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &Candidate::score);
  all.resize(std::min(all.size(), static_cast<size_t>(width())));
  return all;
}

Beams::Hypothesis Beams::extended(const Candidate& candidate) const {
  Hypothesis longer = base::at(live_, candidate.beam);
  longer.tokens.push_back(candidate.next.token);
  longer.log_probs.push_back(candidate.next.log_prob);
  longer.score = candidate.score;
  return longer;
}

void Beams::keep_ended(std::vector<Hypothesis> fresh) {
  for (Hypothesis& one : fresh) {
    one.score = penalized(one.score, length_);
    ended_.push_back(std::move(one));
  }
  std::ranges::stable_sort(ended_, std::ranges::greater(), &Hypothesis::score);
  if (static_cast<int64_t>(ended_.size()) > params_.beams) ended_.resize(static_cast<size_t>(params_.beams));
}

float Beams::penalized(float sum, int64_t length) const {
  return static_cast<float>(sum / std::pow(static_cast<double>(length), params_.length_penalty));
}

bool Beams::ends(int32_t token) const { return std::ranges::find(end_ids_, token) != end_ids_.end(); }

// Returns whether the best live beam would beat the worst kept completion if it ended now or, with kNever and a
// positive penalty, if it kept its sum of scores up to the longest length.
bool Beams::may_improve() const {
  const bool longest = params_.early == EarlyStopping::kNever && params_.length_penalty > 0;
  return penalized(live_.front().score, longest ? max_tokens_ : length_) > ended_.back().score;
}

}  // namespace collimate::generate
