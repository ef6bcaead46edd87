#include "collimate/graph/schedule_core.h"

// Takes place between two iterations, when no task of the run's own graph runs: saves of models that take turns, and
// evaluations.
namespace collimate::graph {

// Has what runs end with what it has. A lost worker that may still come back would take part with the weights of the
// start: it is waited for.
bool ScheduleCore::workers_free() {
  for (const WorkerState& state : workers_.all())
    if (state.task) cut(*state.task);
  return workers_.idle() && !workers_.awaited();
}

// Saves the state after an iteration: at once, or where models are away when each has been on its workers for it, and
// with exact_versions when what runs has ended, so that no row is drawn in part. Then stops for the cause, if there is
// one.
void ScheduleCore::save_after(int64_t number, const std::string& stop_cause) {
  barrier_.want({number, facts_->saved_in_turn(), stop_cause});
  if (barrier_.save()->models.empty()) advance_save();
}

void ScheduleCore::advance_save() {
  if (!barrier_.save()) return;
  Barrier::Save& save = *barrier_.save();
  if (save_lacks_weights()) {
    save.models =
        facts_->saved_in_turn();  // weights that come now are newer than those of models that are saved already
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
  run.issue(facts, workers_, facts.rows);
  update_settled(run);
}

}  // namespace collimate::graph
