#pragma once

#include <cstdint>
#include <vector>

namespace collimate::text {

// `rows` consecutive rows are used `weight` times per epoch: 2 is twice, 0.5 is half of them, chosen anew each epoch.
struct RowWeight {
  int64_t rows = 0;
  double weight = 1.0;
  bool operator==(const RowWeight&) const = default;
};

struct OrderOptions {
  int64_t rows = 0;                // rows of the data set
  std::vector<RowWeight> weights;  // empty: every row once; else they cover the rows from 0 on, `rows` in all
  uint64_t seed = 0;
  bool shuffle = true;
};

// Returns the rows in the order in which an epoch uses them: a Fisher-Yates shuffle from (seed, epoch) alone. Every
// epoch has the same number of rows, which is 0 when the weights are too small.
std::vector<int64_t> epoch_order(const OrderOptions& options, int64_t epoch);

}  // namespace collimate::text
