#include "collimate/plan/published/predict.h"

#include <algorithm>

namespace collimate::plan::published {
namespace {

// Builds the phases of one scenario.
class Builder {
 public:
  Builder(const Scenario& scenario, const Constants& c, const std::map<std::string, Execution>* layouts)
      : s_(scenario), c_(c), layouts_(layouts) {}

  Prediction take() && { return std::move(made_); }

  Job job(const std::string& role, Work work, int devices) const {
    Job job{s_.models.at(role), work, role == "actor" || role == "ref", s_.gpu, s_.gpu.per_node, devices, s_.load};
    return job;
  }

  // Runs a role's function and keeps its time under `name`.
  void add(const std::string& name, const std::string& role, Work work, const std::string& text, int devices) {
    const auto model = s_.models.find(role);
    if (model == s_.models.end()) return;
    const RoleLayout fixed = s_.layout(text);
    const Job asked = job(role, work, fixed_devices(text, devices));
    const Execution how = layouts_ != nullptr ? layouts_->at(name) : execution(asked, fixed);
    made_.phases[name] = phase_time(asked, how, c_, work == Work::kGenerate ? resident_bytes() : 0);
    made_.executions[name] = how;
  }

  void add_transfer(bool same_devices, int train_devices, int generate_devices) {
    made_.transfer_seconds = transfer_seconds(job("actor", Work::kTrain, train_devices), made_.executions["train"],
                                              job("actor", Work::kGenerate, generate_devices),
                                              made_.executions["generate"], same_devices, c_);
  }

  Prediction& made() { return made_; }

  // What the trained state of all models leaves on each device while it generates. Where that is more than half a
  // device, users off-load the optimizer.
  double resident_bytes() const {
    if (s_.backend != "deepspeed-chat") return 0;
    const double full = state_bytes(2 + c_.gradient_bytes + c_.optimizer_bytes);
    return s_.offload || full > usable_bytes(s_.gpu, c_) / 2 ? state_bytes(2) : full;
  }
  // Shards of all models, so many bytes an element for the trained ones. On one device the actor is no shard: it is
  // what generates.
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
    space.offload = s_.offload || trains_sharded(s_.backend);
    if (fixed.tp > 0 && job.devices % fixed.tp == 0) space.tp = fixed.tp;
    if (const int cut = std::max(fixed.tp, 1) * fixed.pp; fixed.pp > 0 && job.devices % cut == 0) space.pp = fixed.pp;
    if (fixed.ep > 0 && job.model.experts.count > 0) space.ep = fixed.ep;
    if (space.tp + space.pp == 0 && job.work != Work::kGenerate && (s_.zero3 || trains_sharded(s_.backend))) {
      space.tp = space.pp = 1;
      space.zero = 3;
    }
    return space;
  }

  Execution execution(const Job& job, const RoleLayout& fixed) const {
    SearchSpace allowed = space(job, fixed);
    if (job.work == Work::kGenerate && !s_.searched && allowed.tp == 0) return narrowest(job, allowed);
    std::optional<Candidate> best = fastest(job, allowed, c_);
    if (best) return finished(best->how);
    // It ran, so it fitted: the bound is too high for it. The stated layout in its leanest form.
    Execution how;
    how.layout.tp = std::max(allowed.tp, 1);
    how.layout.pp = std::max(allowed.pp, 1);
    how.layout.ep = std::max(allowed.ep, 1);
    how.layout.zero = job.work == Work::kGenerate ? 0 : 3;
    how.layout.micro_batch = 1;
    how.lora_rank = s_.lora_rank;
    how.layout.recompute = job.work == Work::kTrain;
    return finished(how);
  }

  // Generation as users set it up: no more tensor parallelism than the memory asks for.
  Execution narrowest(const Job& job, SearchSpace allowed) const {
    allowed.other_bytes = std::min(resident_bytes(), usable_bytes(s_.gpu, c_) / 2);
    for (allowed.tp = 1; allowed.tp <= job.devices; allowed.tp *= 2) {
      allowed.pp = 1;
      if (job.devices % allowed.tp != 0) break;
      if (const std::optional<Candidate> found = fastest(job, allowed, c_)) return finished(found->how);
    }
    Execution how;
    how.layout.tp = std::min(job.per_node, job.devices);
    return finished(how);
  }

  Execution finished(Execution how) const {
    how.fp8 = s_.fp8;
    how.layout.recompute = how.layout.recompute || s_.recompute;
    return how;
  }

  const Scenario& s_;
  const Constants& c_;
  const std::map<std::string, Execution>* layouts_;
  Prediction made_;
};

// What the plain set-up needs: shards of all trained state, and all of the actor's weights while it generates.
std::string plain_misfit(const Scenario& s, const Builder& builder, const Constants& c) {
  Job job = builder.job("actor", Work::kGenerate, s.devices);
  MemoryBound bound = memory_of(job, {}, c, std::max(1.0, s.load.rows / s.devices / 16));
  return misfit(bound, builder.state_bytes(2 + c.gradient_bytes + c.optimizer_bytes), s.gpu, c);
}

void add_scores(Builder& builder, const Scenario& s, const std::map<std::string, int>& devices) {
  if (s.recomputes_log_probs) builder.add("log_probs", "actor", Work::kScore, "train", devices.at("actor"));
  builder.add("ref", "ref", Work::kScore, "ref", devices.at("ref"));
  builder.add("reward", "reward", Work::kScore, "reward", devices.at("reward"));
  builder.add("critic", "critic", Work::kScore, "critic", devices.at("critic"));
}

void compose(Prediction& made, const Scenario& s) {
  const double generate = made.seconds("generate"), log_probs = made.seconds("log_probs");
  const double ref = made.seconds("ref"), reward = made.seconds("reward"), critic = made.seconds("critic");
  const double train = made.seconds("train"), critic_train = made.seconds("critic_train");
  if (s.sharing == Sharing::kGroups) {
    made.step_seconds = generate + std::max({log_probs, ref, reward, critic}) + std::max(train, critic_train);
  } else {
    const double rest = log_probs + ref + reward + critic + train + critic_train;
    made.step_seconds = generate + rest;
    if (s.sharing == Sharing::kTwoSides) {
      // The last fifth of the rows is the tail: so much staleness hides all of a side behind the other.
      const double hidden = std::min(1.0, s.staleness / 0.2);
      made.step_seconds -= hidden * std::min(generate, rest);
      made.waiting_seconds = made.step_seconds - rest;
    }
  }
  made.step_seconds += made.transfer_seconds;
}

}  // namespace

double Prediction::seconds(const std::string& phase) const {
  const auto found = phases.find(phase);
  return found == phases.end() ? 0 : found->second.total();
}

bool trains_sharded(const std::string& backend) {
  return backend == "deepspeed-chat" || backend == "openrlhf" || backend == "verl";
}

Prediction predict(const Scenario& s, const Constants& c, const std::map<std::string, Execution>* layouts) {
  Builder builder(s, c, layouts);
  const bool two = s.sharing == Sharing::kTwoSides, groups = s.sharing == Sharing::kGroups;
  std::map<std::string, int> devices;
  for (const char* role : {"actor", "critic", "ref", "reward"})
    devices[role] = groups ? s.group_devices.at(role) : two ? s.train_devices : s.devices;
  const int generating = groups ? s.group_devices.at("generate") : two ? s.generate_devices : s.devices;
  builder.add("train", "actor", Work::kTrain, "train", devices.at("actor"));
  builder.add("critic_train", "critic", Work::kTrain, "train", devices.at("critic"));
  builder.add("generate", "actor", Work::kGenerate, "generate", generating);
  add_scores(builder, s, devices);
  builder.add_transfer(!two && !groups, devices.at("actor"), generating);
  builder.made().misfit = plain_misfit(s, builder, c);
  compose(builder.made(), s);
  return std::move(builder).take();
}

}  // namespace collimate::plan::published
