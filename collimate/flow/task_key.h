#pragma once

#include <nlohmann/json.hpp>

#include "collimate/graph/event.h"

namespace collimate::flow {

// A task on the wire: [drive, iteration, node, replica, part], where drive tells the run's graph (0) from evaluations.
struct TaskKey {
  int64_t drive = 0;
  graph::Task task;
  auto operator<=>(const TaskKey&) const = default;
};

inline nlohmann::json to_json(const TaskKey& key) {
  return nlohmann::json::array({key.drive, key.task.iteration, key.task.node, key.task.replica, key.task.part});
}

inline TaskKey task_key(const nlohmann::json& json) {
  return {json.at(0).get<int64_t>(),
          {json.at(1).get<int64_t>(), json.at(2).get<int>(), json.at(3).get<int>(), json.at(4).get<int>()}};
}

}  // namespace collimate::flow
