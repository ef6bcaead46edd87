#include "collimate/graph/schedule_core.h"

namespace collimate::graph {

void ScheduleCore::advance_transfers() {
  transfers_.prune(workers_);
  for (size_t i = 0; i < transfers_.all().size(); ++i) {
    if (transfers_.all()[i].running) continue;
    const Transfers::Step step = transfers_.step(transfers_.all()[i], workers_);
    for (const Task& task : step.cut) cut(task);
    if (step.begins) begin_transfer(i);
  }
}

void ScheduleCore::begin_transfer(size_t index) {
  const Transfer& transfer = transfers_.begin(index, workers_);
  const WeightLink& link = transfers_.link(transfer);
  if (transfer.paused) emit(ActionKind::kPause).model = link.destination;
  Action& action = emit(ActionKind::kTransition);
  action.transition = TransitionKind::kWeights;
  action.source = link.source;
  action.model = link.destination;
  action.worker = transfer.worker;
  action.version = transfer.version;
}

void ScheduleCore::weights_at(const Event& event) {
  const std::optional<Transfer> transfer = transfers_.arrived(event.model, event.worker, event.version, workers_);
  if (transfer) ended(*transfer);
}

void ScheduleCore::ended(const Transfer& transfer) {
  if (transfer.paused) emit(ActionKind::kResume).model = transfers_.link(transfer).destination;
  changed_ = true;
}

}  // namespace collimate::graph
