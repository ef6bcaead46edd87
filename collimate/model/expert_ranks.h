#pragma once

#include <cstdint>
#include <vector>

#include "collimate/comm/group.h"
#include "collimate/shape/local.h"

namespace collimate::model {

// The ranks that share the experts of a mixture. Each has tokens of its own, and in every layer of experts all meet:
// every rank makes the same number of forwards and backwards, with no tokens where it has none. One rank by default.
struct ExpertRanks {
  shape::ExpertRank place;
  comm::Group* group = nullptr;  // of just these ranks; null: nothing is sent, as where a pass is only measured
  double deadline_seconds = 600.0;

  bool several() const { return place.ranks > 1; }
  int64_t most(int64_t value) const;   // of all ranks', which are below 2^24
  uint64_t sum(uint64_t value) const;  // mod 2^64
  double sum(double value) const;      // in rank order
  // Collects a parameter that rank `owner` has: the first rank gets it, others that gave it nothing.
  std::vector<float> gather(int owner, int64_t count, std::vector<float> values) const;
};

}  // namespace collimate::model
