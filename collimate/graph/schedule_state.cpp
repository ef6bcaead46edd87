#include "collimate/base/error.h"
#include "collimate/graph/schedule_core.h"

namespace collimate::graph {

template <class Self>
void ScheduleCore::fields(Self& self, auto&& field) {
  field("begun", self.begun_);
  field("stopped", self.stopped_);
  field("front", self.front_);
  field("next", self.next_);
  field("active", self.active_);
  field("evaluations", self.evaluations_);
  Workers::fields(self.workers_, field);
  Transfers::fields(self.transfers_, field);
  field("swaps", self.swaps_);
  Barrier::fields(self.barrier_, field);
}

nlohmann::json ScheduleCore::to_json() const {
  nlohmann::json state{{"fingerprint", facts_->fingerprint}, {"placed", facts_->placed}};
  fields(*this, [&](const char* name, const auto& value) { state[name] = value; });
  return state;
}

namespace {

// Adds what a state lacks that was written before evaluations were tasks of the schedule. No checkpoint was written
// while such an evaluation ran.
void add_evaluations(nlohmann::json& state, const ScheduleFacts& facts) {
  state["evaluations"] = state["evaluations_wanted"] = nlohmann::json::array();
  state["saving"] = nullptr;
  state["swaps"] = Swaps();
  for (nlohmann::json& run : state.at("active")) run["graph"] = 0;
  const nlohmann::json wanted = state.at("evaluation");
  for (const EvaluationTimes& times : facts.times)
    if (!wanted.is_null()) state["evaluations_wanted"].push_back(Barrier::Pass{times.name, wanted.get<int64_t>()});
}

nlohmann::json upgraded(nlohmann::json state, const ScheduleFacts& facts) {
  if (!state.contains("evaluations")) add_evaluations(state, facts);
  for (nlohmann::json& pass : state.at("evaluations_wanted")) pass.emplace("at_end", false);
  return state;
}

}  // namespace

void ScheduleCore::from_json(const nlohmann::json& json) {
  const nlohmann::json state = upgraded(json, *facts_);
  if (state.at("fingerprint").get<uint64_t>() != facts_->fingerprint)
    throw base::RunError(base::expectation("schedule", "the state of a run of the same graph and rows", "another one's",
                                           "the configuration that the checkpoint was made with"));
  fields(*this, [&](const char* name, auto& value) { state.at(name).get_to(value); });
  if (state.at("placed").get<uint64_t>() != facts_->placed) place_anew();
}

// Adapts a state of another placement: no worker of this one has done anything, and rows have other homes.
void ScheduleCore::place_anew() {
  workers_ = Workers(facts_->nodes_on.size());
  transfers_.reset();
  swaps_ = Swaps();
  evaluations_.clear();
  barrier_.restart(*facts_);
  for (IterationRun& run : active_) run.place_anew(*facts_, workers_);
}

}  // namespace collimate::graph
