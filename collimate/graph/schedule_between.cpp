#include "collimate/graph/schedule_core.h"

// This file has what takes place between two iterations, when no task of the run's own graph runs: saves of models that
// take turns, and evaluations.
namespace collimate::graph {

// Lets running tasks end with the rows that they have, and returns whether all workers are free. A lost worker that may
// still come back is waited for, because it would take part with the weights of the start.
bool ScheduleCore::workers_free() {
  for (const WorkerState& state : workers_.all())
    if (state.task) cut(*state.task);
  return workers_.idle() && !workers_.awaited();
}

// Saves the state after an iteration and then stops for the cause, if there is one. The save happens at once, with two
// exceptions: models that are away are first brought to their workers, one after the other, and with exact_versions
// running tasks end first, so that no row is drawn in part.
void ScheduleCore::save_after(int64_t number, const std::string& stop_cause) {
  barrier_.want({number, facts_->saved_in_turn(), stop_cause});
  if (barrier_.save()->models.empty()) advance_save();
}

void ScheduleCore::advance_save() {
  if (!barrier_.save()) return;
  Barrier::Save& save = *barrier_.save();
  if (save_lacks_weights()) {
    save.models = facts_->saved_in_turn();  // weights that come now are newer than those already saved
    return;
  }
  if ((options().exact_versions || !save.models.empty()) && !workers_free()) return;
  while (!save.models.empty()) {
    const std::string& model = save.models.front();
    if (!resident({model}, workers_.alive_of(facts_->workers.at(model)))) return;
    Action& action = emit(ActionKind::kSaveModel);
    action.iteration = save.iteration;
    action.model = model;
    save.models.erase(save.models.begin());
  }
  emit(ActionKind::kSave).iteration = save.iteration;
  const std::string stop_cause = save.stop_cause;
  barrier_.save().reset();
  if (!stop_cause.empty()) stop(StopKind::kAsked, stop_cause);
}

void ScheduleCore::advance_evaluations() {
  if (!evaluations_.empty() && evaluations_[0].complete()) end_evaluation();
  if (barrier_.save() || !barrier_.wanted() || !transfers_.empty() || !workers_free()) return;
  open_evaluation();
}

void ScheduleCore::end_evaluation() {
  Action& action = emit(ActionKind::kEvaluated);
  action.graph = evaluations_[0].graph;
  action.iteration = evaluations_[0].number;
  evaluations_.clear();
  barrier_.evaluated();
}

void ScheduleCore::open_evaluation() {
  const Barrier::Pass wanted = *barrier_.wanted();
  size_t index = 0;
  while (facts_->times.at(index).name != wanted.evaluation) ++index;
  const GraphFacts& facts = facts_->evaluations.at(index);
  IterationRun& run = evaluations_.emplace_back(wanted.iteration, facts);
  barrier_.evaluate();
  run.issue(facts, workers_, rows_of(run));
  update_settled(run);
}

}  // namespace collimate::graph
