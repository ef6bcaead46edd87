#include <algorithm>

#include "collimate/plan/published/predict.h"
#include "collimate/plan/published/text.h"

namespace collimate::plan::published {
namespace {

// Papers count a training step as four forwards: theirs recompute.
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

// The seconds that a phase column speaks of, or nothing.
std::optional<double> phase_seconds(const std::string& phase, const Scenario& s, const Prediction& p) {
  for (const char* whole : {"iteration", "step", "step 3", "step 3 epoch", "episode", "full run", "effective"})
    if (phase == whole) return p.step_seconds;
  if (has(phase, "epoch") || has(phase, "effective training")) return p.step_seconds;
  if (phase == "generation" && s.sharing == Sharing::kTwoSides && s.staleness >= 0) return p.waiting_seconds;
  if (phase == "generation" || phase == "gen" || phase == "generate_sequences" || phase == "rollout total")
    return p.seconds("generate");
  if (phase == "rollout tail") return p.phases.at("generate").tail;
  if (phase == "wait_prev_gen") return p.waiting_seconds;
  if (phase == "old_log_prob") return p.seconds("log_probs");
  if (phase == "ref") return p.seconds("ref") > 0 ? p.seconds("ref") : p.seconds("log_probs");
  if (phase == "update_actor" || phase == "training") return p.seconds("train");
  if (phase == "weight sync") return p.transfer_seconds;
  return std::nullopt;
}

double time_in(const std::string& unit, const Scenario& s, double seconds) {
  if (const double steps = number(unit, R"(h/([0-9]+) steps)", 0); steps > 0) return seconds * steps / 3600;
  if (unit == "h/epoch") return seconds * s.epoch_rows / s.load.rows / 3600;
  return seconds;
}

std::variant<double, std::string> throughput_in(const Row& row, const Scenario& s, const Prediction& p,
                                                double seconds) {
  const std::string& unit = row["unit"];
  const double tokens = s.load.tokens();
  if (unit == "PFLOP/s") return counted_flops(s) / seconds / 1e15;
  if (unit == "samples/s") return s.load.rows / seconds;
  if (unit == "samples/s/GPU") return s.load.rows / seconds / s.devices;
  if (unit == "tok/s") return tokens / seconds;
  if (unit == "tok/s/GPU") return tokens / seconds / s.devices;
  if (unit != "TFLOP/s/GPU") return "unit " + unit + " is not modelled";
  double flops = forward_of(s, "actor");
  if (row["phase"] == "training") flops *= kCountedTrainPasses;
  if (row["phase"] == "effective") {
    flops *= 1 + kCountedTrainPasses;
    seconds = p.seconds("generate") + p.seconds("train");
  }
  return flops / seconds / s.devices / 1e12;
}

double share_of(const Row& row, const Prediction& p) {
  const double part = row["phase"] == "rollout" ? p.seconds("generate") : p.seconds("train") + p.seconds("log_probs");
  return 100 * part / p.step_seconds;
}

}  // namespace

std::variant<double, std::string> metric_of(const Row& row, const Scenario& s, const Prediction& p) {
  const std::string& metric = row["metric"];
  if (metric == "status") return p.misfit.empty() ? 0.0 : 1.0;
  if (metric == "share" && (row["phase"] == "rollout" || row["phase"] == "training")) return share_of(row, p);
  if (metric != "time" && metric != "throughput" && metric != "MFU") return "metric " + metric + " is not modelled";
  const std::optional<double> seconds = phase_seconds(row["phase"], s, p);
  if (!seconds || *seconds <= 0) return "phase '" + row["phase"] + "' is not modelled";
  if (row["unit"] == "h/epoch" && s.epoch_rows <= 0) return "rows of an epoch not given";
  if (metric == "MFU") return 3 * forward_of(s, "actor") / *seconds / s.devices / s.gpu.flops;
  if (metric == "time") return time_in(row["unit"], s, *seconds);
  return throughput_in(row, s, p, *seconds);
}

}  // namespace collimate::plan::published
