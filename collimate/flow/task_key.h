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

inline void to_json(nlohmann::json& out, const TaskKey& key) {
  out = key.task;
  out.insert(out.begin(), key.drive);
}

inline void from_json(const nlohmann::json& in, TaskKey& key) {
  in.at(0).get_to(key.drive);
  in.at(1).get_to(key.task.iteration);
  in.at(2).get_to(key.task.node);
  in.at(3).get_to(key.task.replica);
  in.at(4).get_to(key.task.part);
}

}  // namespace collimate::flow
