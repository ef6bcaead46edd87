#include "collimate/graph/device_memory.h"

#include <algorithm>

namespace collimate::graph {

std::map<std::string, int64_t> DeviceMemory::together(int worker, const std::vector<std::string>& models) const {
  std::map<std::string, int64_t> sum;
  const auto on_worker = items.find(worker);
  if (on_worker == items.end()) return sum;
  for (const std::string& model : models) {
    const auto of_model = on_worker->second.find(model);
    if (of_model == on_worker->second.end()) continue;
    for (const auto& [item, bytes] : of_model->second) sum[item] = std::max(sum[item], bytes);
  }
  return sum;
}

int64_t DeviceMemory::bytes(int worker, const std::vector<std::string>& models) const {
  int64_t sum = 0;
  for (const auto& [item, bytes] : together(worker, models)) sum += bytes;
  return sum;
}

}  // namespace collimate::graph
