#include "collimate/graph/schedule.h"

#include "collimate/base/error.h"
#include "collimate/graph/schedule_core.h"

namespace collimate::graph {

Schedule::Schedule(const Graph& graph, const Placement& placement, const ScheduleOptions& options,
                   std::span<const EvaluationGraph> evaluations, const DeviceMemory& memory)
    : core_(std::make_unique<ScheduleCore>(
          std::make_shared<const ScheduleFacts>(make_facts(graph, placement, options, evaluations, memory)))) {}
Schedule::Schedule(const Schedule& other) : core_(std::make_unique<ScheduleCore>(*other.core_)) {}
Schedule& Schedule::operator=(const Schedule& other) {
  *core_ = *other.core_;
  return *this;
}
Schedule::Schedule(Schedule&&) noexcept = default;
Schedule& Schedule::operator=(Schedule&&) noexcept = default;
Schedule::~Schedule() = default;

std::span<const Action> Schedule::on(const Event& event) { return core_->on(event); }
std::vector<Action> Schedule::bring(const std::string& model, bool at_setup) { return core_->bring(model, at_setup); }
bool Schedule::stopped() const { return core_->stopped(); }
int64_t Schedule::completed() const { return core_->completed(); }
std::string Schedule::waiting() const { return core_->waiting(); }

void Schedule::save(base::StateWriter& out) const { out.json("schedule", core_->to_json()); }

void Schedule::load(base::StateReader& in) {
  const nlohmann::json state = in.json("schedule");
  ScheduleCore loaded = *core_;
  try {
    loaded.from_json(state);
  } catch (const nlohmann::json::exception& error) {
    throw base::RunError(base::expectation("schedule", "a state written by this release", error.what()));
  }
  *core_ = std::move(loaded);
}

}  // namespace collimate::graph
