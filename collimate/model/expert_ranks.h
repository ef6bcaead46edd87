#pragma once

#include "collimate/model/rank_line.h"
#include "collimate/shape/local.h"

namespace collimate::model {

// The ranks that share the experts of a mixture. Each has tokens of its own, and in every layer of experts all meet:
// every rank makes the same number of forwards and backwards, with no tokens where it has none. One rank by default.
struct ExpertRanks : RankLine {
  shape::ExpertRank place;
  bool several() const { return place.ranks > 1; }
};

}  // namespace collimate::model
