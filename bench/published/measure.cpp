#include "bench/published/measure.h"

#include <nlohmann/json.hpp>

namespace collimate::plan::published {
namespace {

// Papers count a training step as four forwards, because their systems recompute.
constexpr double kCountedTrainPasses = 4;

double forward_of(const Scenario& s, const std::string& role) {
  const auto model = s.models.find(role);
  if (model == s.models.end()) return 0;
  return s.load.rows * forward_flops(model->second, s.load.row_tokens(), role == "actor" || role == "ref");
}

double counted_flops(const Scenario& s) {
  return (1 + kCountedTrainPasses) * (forward_of(s, "actor") + forward_of(s, "critic")) + forward_of(s, "ref") +
         forward_of(s, "reward");
}

double part_seconds(const std::string& part, const Scenario& s, const Prediction& p) {
  if (part == "step") return p.step_seconds;
  if (part == "waiting") return p.waiting_seconds;
  if (part == "transfer") return p.transfer_seconds;
  if (part == "tail") return p.phases.at("generate").tail;
  if (part == "generation") return s.generations * p.seconds("generate");
  if (part == "training") return s.train_sets * p.seconds("train");
  return p.seconds(part);
}

double part_seconds(const Measure& measure, const Scenario& s, const Prediction& p) {
  double sum = 0;
  for (const std::string& part : measure.parts) sum += part_seconds(part, s, p);
  return sum;
}

// Converts the seconds of an iteration into the measure's unit and number of iterations or rows.
double time_of(const Measure& measure, const Scenario& s, double seconds) {
  if (measure.iterations > 0) return seconds * measure.iterations / 3600;
  if (measure.rows > 0) return seconds * measure.rows / s.load.rows / (measure.unit == "min" ? 60 : 3600);
  return measure.unit == "ms" ? seconds * 1e3 : seconds;
}

double throughput_of(const Measure& measure, const Scenario& s, const Prediction& p, double seconds) {
  const std::string& unit = measure.unit;
  if (unit == "PFLOP/s") return counted_flops(s) / seconds / 1e15;
  if (unit == "samples/s") return s.load.rows / seconds;
  if (unit == "samples/s/GPU") return s.load.rows / seconds / s.devices;
  if (unit == "tok/s") return s.load.tokens() / seconds;
  if (unit == "tok/s/GPU") return s.load.tokens() / seconds / s.devices;
  double flops = forward_of(s, "actor");
  if (measure.phase == "training") flops *= kCountedTrainPasses;
  if (measure.phase == "effective") {
    flops *= 1 + kCountedTrainPasses;
    seconds = p.seconds("generate") + p.seconds("train");
  }
  return flops / seconds / s.devices / 1e12;
}

// Returns the baseline's time over the system's, each with the constants of its own software.
double speed_up(const Scenario& named, const Prediction& prediction, const ConstantsOf& constants) {
  const Constants c = constants(named.backend);
  return predict(with_lengths(named, c), c).step_seconds / prediction.step_seconds;
}

}  // namespace

Measure measure_of(const nlohmann::json& given, const DeviceKinds& kinds) {
  Measure measure;
  measure.kind = given.at("kind");
  measure.parts = given.value("parts", measure.parts);
  measure.unit = given.value("unit", "");
  measure.phase = given.value("phase", "");
  measure.iterations = given.value("iterations", 0.0);
  measure.rows = given.value("rows", 0.0);
  if (given.contains("baseline"))
    measure.baseline = std::make_shared<Scenario>(scenario_of(given.at("baseline"), kinds));
  return measure;
}

std::variant<double, std::string> value_of(const Measure& measure, const Scenario& s, const Prediction& p,
                                           const ConstantsOf& constants) {
  if (measure.kind == "speed-up") return speed_up(*measure.baseline, p, constants);
  if (measure.kind == "status") return p.misfit.empty() ? 0.0 : 1.0;
  const double seconds = part_seconds(measure, s, p);
  if (measure.kind == "share") return 100 * seconds / p.step_seconds;
  if (measure.kind == "time") return time_of(measure, s, seconds);
  if (seconds <= 0) return "a rate of phase '" + measure.phase + "', which takes no time";
  if (measure.kind == "MFU") return 3 * forward_of(s, "actor") / seconds / s.devices / s.gpu.flops;
  return throughput_of(measure, s, p, seconds);
}

}  // namespace collimate::plan::published
