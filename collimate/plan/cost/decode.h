#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "collimate/plan/cost/finish.h"

namespace collimate::plan {

// A DecodeRound returns the seconds of one decoding round of `alive` rows whose contexts average `context` tokens.
using DecodeRound = std::function<double(double alive, double context)>;

// DecodeLimits say how much decodes at once: so many rows, whose keys and values are of no more than so many tokens.
struct DecodeLimits {
  double rows = 1;
  double pool_tokens = std::numeric_limits<double>::infinity();
};

struct Decoding {
  double seconds = 0;
  double tail_seconds = 0;  // after four fifths of the rows are complete
  Finish finish = {};       // seconds after which each part of the rows is complete
  double rounds = 0;
  double preempted_rows = 0;     // that gave their place back when the pool was full
  double recomputed_tokens = 0;  // of their contexts: to be prefilled again, not part of the seconds
};

// Simulates the continuous batching of one replica, as generate/scheduler.h does it: a row that ends makes room for the
// next, a row begins where the contexts fit the pool up to the next completion, and when the pool is full the row that
// came last is preempted and goes on later. `lengths` stand for `rows` rows, equally many each, in order of arrival.
// Time goes from one completion or preemption to the next, so the work is proportional to the lengths and not to the
// tokens.
Decoding decode(const std::vector<double>& lengths, double rows, const DecodeLimits& limits, double prompt,
                const DecodeRound& round);

}  // namespace collimate::plan
