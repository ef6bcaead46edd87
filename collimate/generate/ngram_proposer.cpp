#include "collimate/generate/ngram_proposer.h"

#include <algorithm>

namespace collimate::generate {
namespace {

// Returns a key that is unique for the two tokens before `place`.
uint64_t pair_before(std::span<const int32_t> ids, int64_t place) {
  return static_cast<uint64_t>(static_cast<uint32_t>(ids[place - 2])) << 32 | static_cast<uint32_t>(ids[place - 1]);
}

// Returns how many tokens before `place` equal those at the end of `ids`, up to kMostMatch. The last kLeastMatch must
// be equal.
int64_t match_before(std::span<const int32_t> ids, int64_t place) {
  const auto end = static_cast<int64_t>(ids.size());
  int64_t length = NgramProposer::kLeastMatch;
  while (length < NgramProposer::kMostMatch && length < place && ids[place - 1 - length] == ids[end - 1 - length])
    ++length;
  return length;
}

}  // namespace

void NgramProposer::propose(std::span<const int32_t> ids, int64_t most, std::vector<int32_t>& proposed) {
  proposed.clear();
  if (static_cast<int64_t>(ids.size()) <= kLeastMatch) return;
  index(ids);
  const int64_t place = best_place(ids);
  if (place == 0) return;
  const int64_t period = static_cast<int64_t>(ids.size()) - place;
  for (int64_t i = 0; i < most; ++i) proposed.push_back(ids[place + i % period]);
}

void NgramProposer::reset() {
  newest_.clear();
  earlier_.clear();
}

void NgramProposer::index(std::span<const int32_t> ids) {
  if (earlier_.empty()) earlier_.assign(kLeastMatch, 0);
  const auto end = static_cast<int64_t>(ids.size());
  for (auto place = static_cast<int64_t>(earlier_.size()); place < end; ++place) {
    int32_t& newest = newest_[pair_before(ids, place)];
    earlier_.push_back(newest);
    newest = static_cast<int32_t>(place);
  }
}

int64_t NgramProposer::best_place(std::span<const int32_t> ids) const {
  const auto found = newest_.find(pair_before(ids, static_cast<int64_t>(ids.size())));
  if (found == newest_.end()) return 0;
  int64_t best = 0, longest = 0, looked_at = 0;
  for (int64_t place = found->second; place != 0 && looked_at < kMostPlaces; place = earlier_[place], ++looked_at) {
    const int64_t length = match_before(ids, place);
    if (length <= longest) continue;
    best = place;
    longest = length;
    if (longest == kMostMatch) break;
  }
  return best;
}

}  // namespace collimate::generate
