#pragma once

#include "collimate/model/rank_line.h"
#include "collimate/shape/local.h"

namespace collimate::model {

// These ranks share the experts of a mixture. Each has tokens of its own, and all of them meet in every layer of
// experts: every rank makes the same number of forwards and backwards, without tokens where it has none left. By
// default there is one rank.
struct ExpertRanks : RankLine {
  shape::ExpertRank place;
  bool several() const { return place.ranks > 1; }
};

}  // namespace collimate::model
