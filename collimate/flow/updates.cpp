#include "collimate/flow/updates.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::flow {
namespace {

// Returns rows ordered by `key(uid of the row or its pair)`; rows of equal key keep their order.
template <class Key>
std::vector<int64_t> order_by(const std::vector<int64_t>& uids, std::vector<int64_t> rows, Key key) {
  std::stable_sort(rows.begin(), rows.end(),
                   [&](int64_t a, int64_t b) { return key(base::at(uids, a)) < key(base::at(uids, b)); });
  return rows;
}

std::pair<uint64_t, int64_t> epoch_key(int64_t uid, int64_t epoch) {
  uint64_t place = epoch == 0 ? 0 : base::mix(static_cast<uint64_t>(uid), static_cast<uint64_t>(epoch));
  return {place, uid};
}

}  // namespace

int64_t pair_size(const Batch& rows) { return rows.has(batch::kPairUid.name) ? 2 : 1; }

std::vector<Batch> cut_updates(const Batch& rows, const nlohmann::json& parameters) {
  auto option = [&](const char* name, int64_t fallback) {
    return parameters.is_object() ? parameters.value(name, fallback) : fallback;
  };
  int64_t per_update = option("rows_per_update", 0);
  if (per_update <= 0) per_update = std::max<int64_t>(1, rows.rows());
  if (per_update % pair_size(rows) != 0)
    throw base::InputError(base::expectation("rows_per_update", "whole pairs", std::to_string(per_update)));
  std::vector<int64_t> uids = rows.all(pair_size(rows) == 2 ? batch::kPairUid : batch::kUid);
  std::vector<int64_t> all(static_cast<size_t>(rows.rows()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<Batch> updates;
  for (int64_t epoch = 0; epoch < option("epochs", 1); ++epoch) {
    std::vector<int64_t> order = order_by(uids, all, [&](int64_t uid) { return epoch_key(uid, epoch); });
    for (size_t begin = 0; begin < order.size(); begin += static_cast<size_t>(per_update)) {
      size_t end = std::min(order.size(), begin + static_cast<size_t>(per_update));
      std::vector<int64_t> part(order.begin() + static_cast<int64_t>(begin), order.begin() + static_cast<int64_t>(end));
      updates.push_back(rows.gather(order_by(uids, std::move(part), [](int64_t uid) { return uid; })));
    }
  }
  return updates;
}

}  // namespace collimate::flow
