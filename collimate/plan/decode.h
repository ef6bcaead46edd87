#pragma once

#include <functional>
#include <vector>

namespace collimate::plan {

// Seconds of one decoding round of `alive` rows whose contexts average `context` tokens.
using DecodeRound = std::function<double(double alive, double context)>;

struct Decoding {
  double seconds = 0;
  double tail_seconds = 0;  // after four fifths of the rows are complete
  double rounds = 0;
};

// Continuous batching of one replica: at most `limit` rows decode at once, one that ends makes room for the next.
// `lengths` stand for `rows` rows, equally many each, in order of arrival. Time is taken between completions only, so
// the work is proportional to the lengths and not to the tokens.
Decoding decode(const std::vector<double>& lengths, double rows, double limit, double prompt, const DecodeRound& round);

}  // namespace collimate::plan
