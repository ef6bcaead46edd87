#include "bench/published/predict.h"

#include <algorithm>

namespace collimate::plan::published {
namespace {

// Seconds that a layer without fused kernels adds for a decoded token. LLaMA's layers in DeepSpeed-Chat take 1.1 to
// 1.8 ms in all (its runs with 128, 384 and 896 generated tokens in 2406.14088).
constexpr double kUnfusedLayer = 1e-3;
constexpr double kRowsAtOnce = 16;  // users choose layouts in which at least so many rows decode at once

// A Builder builds the phases of one scenario.
class Builder {
 public:
  Builder(const Scenario& scenario, const Constants& c, const std::map<std::string, Execution>* layouts)
      : s_(scenario), c_(c), layouts_(layouts) {}

  Prediction take() && { return std::move(made_); }

  Job job(const std::string& role, Work work, int devices) const {
    Job job{s_.models.at(role), work, role == "actor" || role == "ref", s_.gpu, s_.gpu.per_node, devices, s_.load};
    return job;
  }

  // Costs a role's function and keeps its time and layout under `name`. Does nothing if the run has no such role.
  void add(const std::string& name, const std::string& role, Work work, const std::string& text, int devices) {
    const auto model = s_.models.find(role);
    if (model == s_.models.end()) return;
    const RoleLayout fixed = s_.layout(text);
    const Job asked = job(role, work, fixed_devices(text, devices));
    Execution how = layouts_ != nullptr ? layouts_->at(name) : execution(asked, fixed);
    if (work == Work::kGenerate) how.decoding_rows = s_.call_rows;
    Constants constants = c_;
    if (work == Work::kGenerate && s_.unfused) constants.decode_layer_seconds += kUnfusedLayer;
    if (work == Work::kTrain && s_.sharing == Sharing::kTwoSides) constants.train_efficiency *= c_.own_training;
    made_.phases[name] = phase_time(asked, how, constants, work == Work::kGenerate ? resident_bytes() : 0);
    made_.executions[name] = how;
  }

  void add_transfer(bool same_devices, int train_devices, int generate_devices) {
    made_.transfer_seconds = transfer_seconds(job("actor", Work::kTrain, train_devices), made_.executions["train"],
                                              job("actor", Work::kGenerate, generate_devices),
                                              made_.executions["generate"], same_devices, c_);
  }

  Prediction& made() { return made_; }

  // Returns the bytes of the models' state that each device holds while it generates. If that would be more than half
  // of a device, users off-load the optimizer. Only DeepSpeed-Chat keeps state there; others return 0.
  double resident_bytes() const {
    if (s_.backend != "deepspeed-chat") return 0;
    const double full = state_bytes(2 + c_.gradient_bytes + c_.optimizer_bytes);
    return s_.offload || full > usable_bytes(s_.gpu, c_) / 2 ? state_bytes(2) : full;
  }
  // Returns the bytes of the shards of all models on a device, with `trained_bytes` for each element of a trained one
  // and 2 for others. On one device the actor's own weights do not count, as they are those that generate.
  double state_bytes(double trained_bytes) const {
    double bytes = 0;
    for (const auto& [role, model] : s_.models) {
      const bool trained = (role == "actor" || role == "critic") && s_.lora_rank == 0;
      const double own = role == "actor" && s_.devices == 1 ? 2 : 0;
      bytes += shape::total_parameters(model) * ((trained ? trained_bytes : 2) - own) / s_.devices;
    }
    return bytes;
  }

 private:
  int fixed_devices(const std::string& text, int devices) const {
    const auto found = s_.layouts.find(text);
    if (found == s_.layouts.end() || found->second.devices == 0) return devices;
    return std::min(devices, found->second.devices);
  }

  SearchSpace space(const Job& job, const RoleLayout& fixed) const {
    SearchSpace space;
    space.lora_rank = s_.lora_rank;
    space.micro_batch = s_.micro_batch;
    space.offload = s_.offload || s_.sharded_training;
    if (fixed.tp > 0 && job.devices % fixed.tp == 0) space.tp = fixed.tp;
    if (const int cut = std::max(fixed.tp, 1) * fixed.pp; fixed.pp > 0 && job.devices % cut == 0) space.pp = fixed.pp;
    // A layout such as "DP4 TP1" of four devices leaves one stage, that is, no pipeline.
    if (const int copies = space.tp * fixed.dp;
        space.pp == 0 && copies > 0 && job.devices % copies == 0 && job.devices / copies <= job.model.layers)
      space.pp = job.devices / copies;
    if (const int cut = std::max(space.tp, 1) * std::max(space.pp, 1) * fixed.cp;
        fixed.cp > 0 && job.devices % cut == 0)
      space.cp = fixed.cp;
    if (fixed.ep > 0 && job.model.experts.count > 0) space.ep = fixed.ep;
    if (space.tp <= 1 && space.pp <= 1 && job.work != Work::kGenerate && (s_.zero3 || s_.sharded_training)) {
      space.tp = space.pp = 1;
      space.zero = 3;
    }
    return space;
  }

  Execution execution(const Job& job, const RoleLayout& fixed) const {
    SearchSpace allowed = space(job, fixed);
    if (job.work == Work::kGenerate && !s_.searched && allowed.tp == 0) return narrowest(job, allowed);
    std::optional<Candidate> best = fastest(job, allowed, c_);
    if (best) return finished(best->how, job.work);
    // No layout fits by our count of bytes, yet the published run took place, so our count is too high for it. Its time
    // is then that of the published layout in the form that needs the least memory.
    Execution how;
    how.layout.tp = std::max(allowed.tp, 1);
    how.layout.pp = std::max(allowed.pp, 1);
    how.layout.ep = std::max(allowed.ep, 1);
    if (job.work != Work::kGenerate) how.layout.cp = std::max(allowed.cp, 1);
    how.layout.zero = job.work == Work::kGenerate ? 0 : 3;
    how.layout.micro_batch = 1;
    how.lora_rank = s_.lora_rank;
    how.layout.recompute = job.work == Work::kTrain;
    return finished(how, job.work);
  }

  // Returns generation as users set it up: with no more tensor parallelism than the weights and some rows at once need.
  Execution narrowest(const Job& job, SearchSpace allowed) const {
    allowed.other_bytes = std::min(resident_bytes(), usable_bytes(s_.gpu, c_) / 2);
    std::optional<Execution> widest;
    for (allowed.tp = 1; allowed.tp <= job.devices; allowed.tp *= 2) {
      allowed.pp = 1;
      if (job.devices % allowed.tp != 0) break;
      const std::optional<Candidate> found = fastest(job, allowed, c_);
      if (!found) continue;
      widest = found->how;
      const double at_once = decoding_rows(job, *widest, c_, allowed.other_bytes);
      if (at_once >= std::min({kRowsAtOnce, replica_rows(job, *widest), c_.batch_rows})) break;
    }
    if (widest) return finished(*widest, job.work);
    Execution how;
    how.layout.tp = std::min(job.per_node, job.devices);
    return finished(how, job.work);
  }

  // Adds the techniques that the row states, even if it would fit without them.
  Execution finished(Execution how, Work work) const {
    how.fp8 = s_.fp8;
    how.layout.offload = how.layout.offload || (work == Work::kTrain && s_.offload);
    how.layout.recompute = how.layout.recompute || s_.recompute;
    return how;
  }

  const Scenario& s_;
  const Constants& c_;
  const std::map<std::string, Execution>* layouts_;
  Prediction made_;
};

constexpr double kLeastBatch = 4;  // rows of a device in the smallest call of DeepSpeed-Chat's recipes

// Returns why the plain set-up does not fit a device, or "". It needs shards of all trained state, and all of the
// actor's weights while it generates. On one device, where nothing is sharded, the optimizer is on the host as in
// DeepSpeed-Chat's recipe for one device.
std::string plain_misfit(const Scenario& s, const Builder& builder, const Constants& c) {
  Job job = builder.job("actor", Work::kGenerate, s.devices);
  MemoryBound bound = memory_of(job, {}, c, std::clamp(s.load.rows / s.devices, 1.0, kLeastBatch));
  const double trained = s.offload || s.devices == 1 ? 2 : 2 + c.gradient_bytes + c.optimizer_bytes;
  return misfit(bound, builder.state_bytes(trained), s.gpu, c);
}

// Returns the number of devices of a role's functions. Generation has the role "generate".
int devices_of_role(const Scenario& s, const std::string& role) {
  if (s.sharing == Sharing::kTwoSides) return role == "generate" ? s.generate_devices : s.train_devices;
  const auto place = s.places.find(role);
  if (s.sharing == Sharing::kColocated || place == s.places.end()) return s.devices;
  return place->second.devices;
}

void add_scores(Builder& builder, const Scenario& s) {
  if (s.recomputes_log_probs) builder.add("log_probs", "actor", Work::kScore, "train", devices_of_role(s, "actor"));
  for (const char* role : {"ref", "reward", "critic"})
    builder.add(role, role, Work::kScore, role, devices_of_role(s, role));
}

// Returns the seconds of a stage. Roles of one set take turns and sets run side by side, except that a set on all
// devices runs alone.
double stage_seconds(const Scenario& s, const std::vector<std::pair<std::string, double>>& calls) {
  double all = 0;
  std::map<int, double> sets;
  for (const auto& [role, seconds] : calls) {
    const auto place = s.places.find(role);
    const bool alone = place == s.places.end() || place->second.devices >= s.devices;
    (alone ? all : sets[place->second.set]) += seconds;
  }
  double longest = 0;
  for (const auto& [set, seconds] : sets) longest = std::max(longest, seconds);
  return all + longest;
}

// Returns the seconds of one iteration's generation if rollouts go on across updates: rows of further iterations decode
// at once, as many as the staleness allows, at most 4.
double continuous_seconds(const Scenario& s, const Prediction& made, const Constants& c) {
  const double ahead = std::min(s.staleness, 4.0);
  Scenario more = s;
  more.load.rows *= 1 + ahead;
  Builder builder(more, c, &made.executions);
  builder.add("generate", "actor", Work::kGenerate, "generate", s.generate_devices);
  return builder.made().seconds("generate") / (1 + ahead);
}

void compose(Prediction& made, const Scenario& s, const Constants& c) {
  const double generate = s.generations * (s.continuous ? continuous_seconds(s, made, c) : made.seconds("generate"));
  const std::vector<std::pair<std::string, double>> scores = {{"actor", made.seconds("log_probs")},
                                                              {"ref", made.seconds("ref")},
                                                              {"reward", s.rewards * made.seconds("reward")},
                                                              {"critic", made.seconds("critic")}};
  const std::vector<std::pair<std::string, double>> updates = {{"actor", s.train_sets * made.seconds("train")},
                                                               {"critic", made.seconds("critic_train")}};
  const double rest = stage_seconds(s, scores) + stage_seconds(s, updates);
  made.step_seconds = generate + rest + made.transfer_seconds;
  if (s.sharing != Sharing::kTwoSides) return;
  const double hidden = std::min(1.0, s.staleness / c.hiding_staleness);
  made.step_seconds -= hidden * std::min(generate, rest);
  made.waiting_seconds = made.step_seconds - rest;
  if (s.continuous) made.waiting_seconds = std::max(made.waiting_seconds, c.queue_seconds);
  made.step_seconds = rest + made.waiting_seconds;
}

}  // namespace

double Prediction::seconds(const std::string& phase) const {
  const auto found = phases.find(phase);
  return found == phases.end() ? 0 : found->second.total();
}

Prediction predict(const Scenario& s, const Constants& c, const std::map<std::string, Execution>* layouts) {
  Builder builder(s, c, layouts);
  builder.add("train", "actor", Work::kTrain, "train", devices_of_role(s, "actor"));
  builder.add("critic_train", "critic", Work::kTrain, "train", devices_of_role(s, "critic"));
  builder.add("generate", "actor", Work::kGenerate, "generate", devices_of_role(s, "generate"));
  add_scores(builder, s);
  const bool apart = s.sharing == Sharing::kTwoSides ||
                     (s.sharing == Sharing::kGroups && s.places.at("generate").set != s.places.at("actor").set);
  builder.add_transfer(!apart, devices_of_role(s, "actor"), devices_of_role(s, "generate"));
  builder.made().misfit = plain_misfit(s, builder, c);
  compose(builder.made(), s, c);
  return std::move(builder).take();
}

}  // namespace collimate::plan::published
