#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/flow/toy_modules.h"

// Toy modules that enter in a book which of the models that take turns lie on which device, and what is asked of them.
namespace collimate::flow::toy {

// Shared by the workers' threads.
class DeviceBook {
 public:
  void moved(int device, const std::string& model, bool there) {
    const std::lock_guard lock(mutex_);
    std::set<std::string>& on = on_[device];
    const bool changed = there ? on.insert(model).second : on.erase(model) == 1;
    if (!changed) wrong_.push_back(fmt::format("{} on {} is {} already", model, device, there ? "loaded" : "away"));
    most_ = std::max(most_, on.size());
    ++moves_;
  }
  void used(int device, const std::string& model, const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (!on_[device].contains(model))
      wrong_.push_back(fmt::format("{} of {} on {}, which is away", what, model, device));
    ++uses_[what];
  }
  // Nothing lies anywhere, as when a run has ended.
  void clear() {
    const std::lock_guard lock(mutex_);
    on_.clear();
  }
  std::vector<std::string> wrong() const { return wrong_; }  // a load of what is there, a call of what is away
  size_t most() const { return most_; }                      // models on one device at a time
  int moves() const { return moves_; }                       // with those of setups
  int uses(const std::string& what) const { return uses_.contains(what) ? uses_.at(what) : 0; }

 private:
  mutable std::mutex mutex_;
  std::map<int, std::set<std::string>> on_;
  std::vector<std::string> wrong_;
  size_t most_ = 0;
  int moves_ = 0;
  std::map<std::string, int> uses_;
};

// A module of which all that takes place is entered, where its model takes turns.
template <class M>
class OnBook : public M {
 public:
  explicit OnBook(DeviceBook& book) : book_(book) {}
  // "planned_bytes" of an item that has the model's name.
  std::vector<tensor::MemoryItem> memory(const Context& context) const override {
    const int64_t planned = context.parameters.value("planned_bytes", int64_t{0});
    return planned == 0 ? M::memory(context) : std::vector<tensor::MemoryItem>{{context.model, planned}};
  }

  void setup(Context& context) override {
    context_ = &context;
    M::setup(context);
    if (swapped()) book_.moved(context.device, context.model, true);
  }
  void reside(bool on_device) override {
    M::reside(on_device);
    book_.moved(context_->device, context_->model, on_device);
  }
  Batch call(const std::string& function, const Batch& input, const CallInfo& info) override {
    use("call");
    return M::call(function, input, info);
  }
  std::unique_ptr<Stream> open(const std::string& function, const CallInfo& info) override {
    use("open");
    return M::open(function, info);
  }
  void train_step(const std::string& function, std::span<const Batch> updates, const CallInfo& info) override {
    use("train");
    M::train_step(function, updates, info);
  }
  WeightsPort* weights() override {
    use("weights");
    return M::weights();
  }
  void save_checkpoint(const std::string& directory, int64_t iteration) override {
    use("export");
    M::save_checkpoint(directory, iteration);
  }
  void save(base::StateWriter& out) const override {
    if (M::keeps_state(*context_)) use("save");
    M::save(out);
  }
  void load(base::StateReader& in) override {
    if (M::keeps_state(*context_)) use("load");
    M::load(in);
  }

 private:
  bool swapped() const { return context_->placement.swaps(context_->model); }
  void use(const std::string& what) const {
    if (swapped()) book_.used(context_->device, context_->model, what);
  }

  DeviceBook& book_;
  Context* context_ = nullptr;
};

inline graph::FunctionSpec judge_spec() { return spec_of("judge", graph::Kind::kScore, {"ids"}, {"score"}); }

// Scores by the row's first id and a number that it counts up, on its device.
class Judge : public Module {
 public:
  std::vector<graph::FunctionSpec> functions() const override { return {judge_spec()}; }
  bool keeps_state(const Context&) const override { return false; }
  void setup(Context&) override {}
  Batch call(const std::string&, const Batch& input, const CallInfo&) override {
    Batch made(input.rows());
    std::vector<float> scores;
    for (int64_t i = 0; i < input.rows(); ++i) scores.push_back(static_cast<float>(input.row(batch::kIds, i)[0]));
    made.set(batch::kScore, scores);
    return made;
  }
};

inline Registry registry_on(DeviceBook& book) {
  Registry registry;
  registry.add("policy", [&book](const nlohmann::json&) { return std::make_unique<OnBook<Policy>>(book); });
  registry.add("trainer", [&book](const nlohmann::json&) { return std::make_unique<OnBook<Trainer>>(book); });
  registry.add("judge", [&book](const nlohmann::json&) { return std::make_unique<OnBook<Judge>>(book); });
  registry.add("reward", [](const nlohmann::json& parameters) { return std::make_unique<Reward>(parameters); });
  return registry;
}

// The run's policy generates eight rows, which a model that only this evaluation has scores.
inline Evaluation judged_evaluation(std::string name = "") {
  graph::ModelHandle policy("policy", {generate_spec()}), judge("judge", {judge_spec()});
  Evaluation evaluation =
      evaluation_of("judged", [&](graph::Value prompts) { judge("judge", policy("generate", prompts)); });
  evaluation.name = std::move(name);
  return evaluation;
}

}  // namespace collimate::flow::toy
