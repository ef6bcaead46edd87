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

void ScheduleCore::from_json(const nlohmann::json& state) {
  if (state.at("fingerprint").get<uint64_t>() != facts_->fingerprint)
    throw base::RunError(base::expectation("schedule", "the state of a run of the same graph and rows", "another one's",
                                           "the configuration that the checkpoint was made with"));
  fields(*this, [&](const char* name, auto& value) { state.at(name).get_to(value); });
  if (state.at("placed").get<uint64_t>() != facts_->placed) place_anew();
}

// The state was another placement's: no worker of this one has done anything, and rows have other homes.
void ScheduleCore::place_anew() {
  workers_ = Workers(facts_->nodes_on.size());
  transfers_.reset();
  swaps_ = Swaps();
  for (IterationRun& run : active_) run.place_anew(*facts_, workers_);
}

}  // namespace collimate::graph
