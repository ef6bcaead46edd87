#include "collimate/plan/decode.h"

#include <algorithm>
#include <queue>

namespace collimate::plan {
namespace {

struct Running {
  double ends;  // round
  double began;
  bool operator<(const Running& other) const { return ends > other.ends; }  // earliest first
};

}  // namespace

Decoding decode(const std::vector<double>& lengths, double rows, double limit, double prompt,
                const DecodeRound& round) {
  const double each = rows / static_cast<double>(lengths.size());
  const size_t room = std::max<size_t>(1, static_cast<size_t>(limit / each));
  std::priority_queue<Running> running;
  Decoding done;
  double began = 0;  // sum over the running rows, for their mean context
  size_t next = 0, complete = 0;
  double at_four_fifths = 0;
  while (complete < lengths.size()) {
    for (; next < lengths.size() && running.size() < room; ++next) {
      running.push({done.rounds + lengths[next], done.rounds});
      began += done.rounds;
    }
    const double until = running.top().ends, count = static_cast<double>(running.size());
    const double context = prompt + (done.rounds + until) / 2 - began / count;
    done.seconds += (until - done.rounds) * round(std::min(count * each, std::max(limit, 1.0)), context);
    done.rounds = until;
    for (; !running.empty() && running.top().ends <= until; running.pop(), ++complete) began -= running.top().began;
    if (complete * 5 <= lengths.size() * 4) at_four_fifths = done.seconds;
  }
  done.tail_seconds = done.seconds - at_four_fifths;
  return done;
}

}  // namespace collimate::plan
