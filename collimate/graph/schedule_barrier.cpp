#include "collimate/graph/schedule_barrier.h"

#include <algorithm>

namespace collimate::graph {

void Barrier::begin(const std::vector<EvaluationTimes>& evaluations, int64_t first) {
  for (const EvaluationTimes& times : evaluations)
    if (times.first) evaluations_wanted_.push_back({times.name, first - 1});
}

void Barrier::restart(const ScheduleFacts& facts) {
  evaluating_ = stop_asked_ = save_asked_ = false;
  if (saving_) saving_->stop_cause.clear();
  std::erase_if(evaluations_wanted_, [&](const Pass& pass) {
    if (pass.at_end && pass.iteration + 1 < facts.options.iterations) return true;
    return std::none_of(facts.times.begin(), facts.times.end(),
                        [&](const EvaluationTimes& times) { return times.name == pass.evaluation; });
  });
}

void Barrier::ask(Ask ask) {
  stop_asked_ = stop_asked_ || ask == Ask::kStop;
  save_asked_ = save_asked_ || ask == Ask::kSave;
  evaluate_asked_ = evaluate_asked_ || ask == Ask::kEvaluate;
}

Barrier::Due Barrier::after(const ScheduleFacts& facts, int64_t iteration) {
  const bool last = iteration + 1 == facts.options.iterations;
  const auto regular = [&](int64_t every) { return every > 0 && (iteration + 1) % every == 0; };
  const auto due = [&](int64_t every) { return regular(every) || (every > 0 && last); };
  const Due made{due(facts.options.save_every) || save_asked_ || stop_asked_, stop_asked_ && !last};
  for (const EvaluationTimes& times : facts.times)
    if (due(times.every) || evaluate_asked_)
      evaluations_wanted_.push_back({times.name, iteration, !regular(times.every) && !evaluate_asked_});
  save_asked_ = evaluate_asked_ = false;
  return made;
}

void Barrier::evaluated() {
  if (evaluating_) evaluations_wanted_.erase(evaluations_wanted_.begin());
  evaluating_ = false;
}

}  // namespace collimate::graph
