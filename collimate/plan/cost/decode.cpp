#include "collimate/plan/cost/decode.h"

#include <algorithm>

namespace collimate::plan {
namespace {

constexpr double kSlack = 1 + 1e-9;                                      // for sums that are exact but for rounding
constexpr std::array<size_t, kFinishParts> kRowsThrough = {4, 6, 7, 8};  // rows of eight, up to the end of each part
constexpr double kNever = std::numeric_limits<double>::infinity();

// WaitingRows are rows of one length that have not begun, or were preempted after `done` tokens.
struct WaitingRows {
  double length = 0, done = 0;
};

// RunningRows are rows of one length that decode, with the rounds in which they end and in which they would have begun
// had they never stopped.
struct RunningRows {
  double ends = 0, began = 0;
};

// A DecodingBatch takes a replica's rows from the first round to the last; it has `each_` rows of every length.
class DecodingBatch {
 public:
  DecodingBatch(const std::vector<double>& lengths, double rows, const DecodeLimits& limits, double prompt)
      : waiting_(lengths.size()),
        each_(rows / static_cast<double>(lengths.size())),
        most_rows_(std::max(limits.rows, 1.0)),
        room_(std::max<size_t>(1, static_cast<size_t>(limits.rows / each_ * kSlack))),
        pool_(limits.pool_tokens / each_ * kSlack),
        prompt_(prompt) {
    std::transform(lengths.rbegin(), lengths.rend(), waiting_.begin(), [](double n) { return WaitingRows{n}; });
  }

  size_t complete() const { return complete_; }
  Decoding& done() { return done_; }

  void admit() {
    while (!waiting_.empty() && running_.size() < room_) {
      const WaitingRows& next = waiting_.back();
      const double ends = now_ + next.length - next.done, began = now_ - next.done;
      const double soonest = std::min(next_end_, ends);
      if (!running_.empty() && contexts(soonest) + prompt_ + soonest - began > pool_) return;
      running_.push_back({ends, began});
      began_ += began;
      next_end_ = soonest;
      waiting_.pop_back();
    }
  }

  // Goes on to the next completion or, if that comes first, to the round in which the pool is full.
  void advance(const DecodeRound& round) {
    const double count = static_cast<double>(running_.size()), until = next_end_;
    const bool full = running_.size() > 1 && contexts(until) > pool_ * kSlack;  // more than what admit() allows
    const double span = full ? std::max(0.0, (pool_ - contexts(now_)) / count) : until - now_;
    // Rows of one length that do not all fit go one part after the other.
    const double parts = running_.size() > 1 ? 1 : std::max({1.0, each_ / most_rows_, contexts(until) / pool_});
    done_.seconds += span * parts * round(count * each_ / parts, prompt_ + now_ + span / 2 - began_ / count);
    done_.rounds += span * parts;
    now_ = full ? now_ + span : until;
    if (full) return preempt_latest();
    finish();
  }

 private:
  // Returns the tokens, in a round to come, of one row of each length that decodes.
  double contexts(double in_round) const {
    return static_cast<double>(running_.size()) * (prompt_ + in_round) - began_;
  }

  void preempt_latest() {
    const RunningRows latest = running_.back();
    running_.pop_back();
    began_ -= latest.began;
    next_end_ = kNever;
    for (const RunningRows& rows : running_) next_end_ = std::min(next_end_, rows.ends);
    waiting_.push_back({latest.ends - latest.began, now_ - latest.began});
    done_.preempted_rows += each_;
    done_.recomputed_tokens += each_ * (prompt_ + now_ - latest.began);
  }

  void finish() {
    next_end_ = kNever;
    complete_ += std::erase_if(running_, [&](const RunningRows& rows) {
      if (rows.ends <= now_) {
        began_ -= rows.began;
        return true;
      }
      next_end_ = std::min(next_end_, rows.ends);
      return false;
    });
  }

  std::vector<WaitingRows> waiting_;  // the next one last
  std::vector<RunningRows> running_;  // in the order in which they came
  double each_, most_rows_;
  size_t room_;
  double pool_;  // tokens for one row of each length
  double prompt_;
  double now_ = 0, began_ = 0;  // the present round; the sum over running_
  double next_end_ = kNever;    // the first end in running_
  size_t complete_ = 0;
  Decoding done_;
};

}  // namespace

Decoding decode(const std::vector<double>& lengths, double rows, const DecodeLimits& limits, double prompt,
                const DecodeRound& round) {
  DecodingBatch batch(lengths, rows, limits, prompt);
  double at_four_fifths = 0;
  size_t part = 0;
  while (batch.complete() < lengths.size()) {
    batch.admit();
    batch.advance(round);
    if (batch.complete() * 5 <= lengths.size() * 4) at_four_fifths = batch.done().seconds;
    while (part < kFinishParts && batch.complete() * kFinishRows >= lengths.size() * kRowsThrough[part])
      batch.done().finish[part++] = batch.done().seconds;
  }
  batch.done().tail_seconds = batch.done().seconds - at_four_fifths;
  return batch.done();
}

}  // namespace collimate::plan
