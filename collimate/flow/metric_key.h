#pragma once

#include <compare>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <tuple>

namespace collimate::flow {

// A MetricKey names a call of a task of an iteration and the rank that measured it. Metrics are added up in this order.
struct MetricKey {
  int node = 0, replica = 0, part = 0;
  int64_t sequence = 0;
  int rank = 0;
  auto operator<=>(const MetricKey&) const = default;
};

// Checkpoints have a key as [node, replica, part, sequence, rank].
inline void to_json(nlohmann::json& out, const MetricKey& key) {
  out = {key.node, key.replica, key.part, key.sequence, key.rank};
}
inline void from_json(const nlohmann::json& in, MetricKey& key) {
  std::tie(key.node, key.replica, key.part, key.sequence, key.rank) = in.get<std::tuple<int, int, int, int64_t, int>>();
}

}  // namespace collimate::flow
