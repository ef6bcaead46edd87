#include "collimate/graph/schedule_barrier.h"

namespace collimate::graph {

void Barrier::ask(Ask ask) {
  stop_asked_ = stop_asked_ || ask == Ask::kStop;
  save_asked_ = save_asked_ || ask == Ask::kSave;
  evaluate_asked_ = evaluate_asked_ || ask == Ask::kEvaluate;
}

Barrier::Due Barrier::after(const ScheduleOptions& options, int64_t iteration) {
  const bool last = iteration + 1 == options.iterations;
  const auto due = [&](int64_t every) { return every > 0 && ((iteration + 1) % every == 0 || last); };
  const Due made{due(options.save_every) || save_asked_ || stop_asked_, stop_asked_ && !last};
  if (due(options.evaluate_every) || evaluate_asked_) evaluation_ = iteration;
  save_asked_ = evaluate_asked_ = false;
  return made;
}

void Barrier::evaluated() {
  if (evaluating_) evaluation_.reset();
  evaluating_ = false;
}

}  // namespace collimate::graph
