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

std::optional<double> called(const Prediction& p, const std::string& name) {
  if (!p.phases.contains(name)) return std::nullopt;
  return p.seconds(name);
}

// The seconds that a phase column speaks of, or nothing.
std::optional<double> one_phase_seconds(const std::string& phase, const Scenario& s, const Prediction& p) {
  for (const char* whole : {"iteration", "step", "step 3", "step 3 epoch", "episode", "full run", "effective"})
    if (phase == whole) return p.step_seconds;
  if (has(phase, "epoch") || has(phase, "effective training")) return p.step_seconds;
  if (phase == "generation" && s.sharing == Sharing::kTwoSides) return p.waiting_seconds;
  for (const char* name : {"generation", "gen", "generate_sequences", "rollout total"})
    if (phase == name) return s.generations * p.seconds("generate");
  if (phase == "rollout tail") return p.phases.at("generate").tail;
  if (phase == "wait_prev_gen") return p.waiting_seconds;
  if (phase == "old_log_prob") return called(p, "log_probs");
  if (phase == "ref") return called(p, p.phases.contains("ref") ? "ref" : "log_probs");
  if (phase == "update_actor" || phase == "training") return s.train_sets * p.seconds("train");
  if (phase == "update_critic") return called(p, "critic_train");
  for (const char* name : {"weight sync", "transition", "reshard", "resharding", "update_weights"})
    if (phase == name) return p.transfer_seconds;
  return std::nullopt;
}

// Of one phase, or of several joined by "+".
std::optional<double> phase_seconds(const std::string& text, const Scenario& s, const Prediction& p) {
  double sum = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('+', begin), text.size());
    std::string phase = text.substr(begin, end - begin);
    while (!phase.empty() && phase.front() == ' ') phase.erase(0, 1);
    while (!phase.empty() && phase.back() == ' ') phase.pop_back();
    const std::optional<double> seconds = one_phase_seconds(phase, s, p);
    if (!seconds) return std::nullopt;
    sum += *seconds;
    begin = end + 1;
  }
  return sum;
}

// Seconds of an iteration in the row's unit.
std::variant<double, std::string> time_in(const std::string& unit, const Scenario& s, double seconds) {
  if (const double steps = number(unit, R"(h/([0-9]+) steps)", 0); steps > 0) return seconds * steps / 3600;
  const bool of_run = unit == "h" || unit == "h/epoch" || unit == "min";
  if (of_run && s.run_rows <= 0) return "rows of a run or epoch not given";
  if (of_run) return seconds * s.run_rows / s.load.rows / (unit == "min" ? 60 : 3600);
  if (unit == "ms") return seconds * 1e3;
  for (const char* plain : {"", "s", "s/iteration", "s/step", "s/episode"})
    if (unit == plain) return seconds;
  return "unit " + unit + " is not modelled";
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
  if (!seconds) return "phase '" + row["phase"] + "' is not modelled";
  if (metric == "time") return time_in(row["unit"], s, *seconds);
  if (*seconds <= 0) return "a rate of phase '" + row["phase"] + "', which takes no time";
  if (metric == "MFU") return 3 * forward_of(s, "actor") / *seconds / s.devices / s.gpu.flops;
  return throughput_in(row, s, p, *seconds);
}

}  // namespace collimate::plan::published
