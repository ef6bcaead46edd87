#pragma once

#include "collimate/base/fields.h"
#include "collimate/graph/event.h"

namespace collimate::flow {

// A task in messages, where `drive` tells the run's graph (0) from evaluations.
struct TaskKey {
  int64_t drive = 0;
  graph::Task task;
  auto operator<=>(const TaskKey&) const = default;

  COLLIMATE_FIELDS(drive, task)
};

}  // namespace collimate::flow
