#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/comm/group.h"
#include "collimate/flow/executor.h"
#include "collimate/flow/host_module.h"
#include "collimate/graph/trace.h"
#include "tests/support/flow/toy_stream.h"

// Small exact stand-ins for a policy, a reward and a trainer: what the executor's tests run. Every number is an integer
// in a float, so that results are equal whatever the order.
namespace collimate::flow::toy {

// The words that this test's program was started with.
inline std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

class NumbersPort : public WeightsPort {
 public:
  explicit NumbersPort(std::shared_ptr<Numbers> numbers) : numbers_(std::move(numbers)) {}
  const void* identity() const override { return numbers_.get(); }
  uint64_t version() const override { return numbers_->version; }
  uint64_t checksum() const override {
    uint64_t sum = 0;
    for (size_t i = 0; i < numbers_->values.size(); ++i)
      sum += base::mix(i, 0) * static_cast<uint64_t>(static_cast<int64_t>(numbers_->values[i]));
    return sum;
  }
  tensor::Exec exec() const override { return {nullptr, &tensor::cpu_device()}; }
  const shape::ModelShape& whole_shape() const override { return shape_; }
  const std::vector<shape::ParamSpec>& whole_params() const override { return params_; }
  bool carries(int) const override { return true; }
  Kept kept(int) override { return {&params_.front(), 0, numbers_->values}; }
  void updated(uint64_t version) override {
    numbers_->version = version;
    if (on_updated) on_updated(version);
  }
  std::function<void(uint64_t version)> on_updated;

 private:
  std::shared_ptr<Numbers> numbers_;
  shape::ModelShape shape_;
  std::vector<shape::ParamSpec> params_ = {
      {.name = "numbers", .kind = shape::ParamKind::kNorm, .sizes = {std::ssize(numbers_->values)}}};
};

// How often a policy was loaded or moved off its device in this process.
inline std::atomic<int> moves{0};
// Trainers built in this process.
inline std::atomic<int> trainers_built{0};

inline graph::FunctionSpec spec_of(std::string name, graph::Kind kind, std::vector<graph::Column> needs,
                                   std::vector<graph::Column> makes) {
  graph::FunctionSpec spec;
  spec.name = std::move(name);
  spec.kind = kind;
  spec.needs = std::move(needs);
  spec.makes = std::move(makes);
  return spec;
}

inline graph::FunctionSpec generate_spec() {
  graph::FunctionSpec spec = spec_of("generate", graph::Kind::kGenerate, {"uid"}, {"ids"});
  spec.streams = true;
  return spec;
}
inline graph::FunctionSpec score_spec(bool deterministic) {
  graph::FunctionSpec spec = spec_of("score", graph::Kind::kHost, {"ids"}, {"reward"});
  spec.granularity = graph::Granularity::kGroup;
  spec.deterministic = deterministic;
  return spec;
}
inline graph::FunctionSpec train_spec() {
  graph::FunctionSpec spec = spec_of("train", graph::Kind::kTrain, {"ids", "reward"}, {});
  spec.granularity = graph::Granularity::kIteration;
  spec.collect = graph::Collect::kNone;
  spec.writes_weights = true;
  spec.retry_safe = false;
  return spec;
}

class Policy : public Module {
 public:
  std::vector<graph::FunctionSpec> functions() const override { return {generate_spec()}; }
  // "holds_bytes" of the worker's memory from setup on; "planned_bytes" says otherwise.
  std::vector<tensor::MemoryItem> memory(const Context& context) const override {
    const int64_t held = context.parameters.value("holds_bytes", int64_t{0});
    if (held == 0) return {};
    return {{"numbers", context.parameters.value("planned_bytes", tensor::allocated_bytes(held))}};
  }
  void setup(Context& context) override {
    context_ = &context;
    const tensor::MemoryScope tagged("numbers");
    held_ = tensor::Buffer(context.parameters.value("holds_bytes", int64_t{0}));
    numbers_ = context.shared<Numbers>("numbers", [] { return std::make_shared<Numbers>(); });
    port_ = std::make_unique<NumbersPort>(numbers_);
    port_->on_updated = [this](uint64_t version) {
      if (version > 0) die_once("die_once_updated");
    };
  }
  // "die_once": a file; in iteration 1 the process that makes it ends at once; with "die_once_updated", when it takes
  // trained weights. "die_at_open": in so many-th call, once with a file "died_open".
  // "fails_on", "dies_on": a worker, which does so in its second step in iteration 1. The steps of a function that is
  // cut over tp sum over its line.
  std::unique_ptr<Stream> open(const std::string& function, const CallInfo& info) override {
    if (info.iteration == 1) die_once("die_once");
    if (++opened_ == context_->parameters.value("die_at_open", 0)) die_once("died_open");
    auto stream = std::make_unique<CountingStream>(numbers_, context_->parameters.contains("patient"), info,
                                                   context_->parameters.contains("twice"));
    stream->sum_over(context_->line(function, "tp"));
    if (info.iteration == 1) stream->before_step = [this, steps = 0]() mutable { suffer(++steps); };
    return stream;
  }
  void reside(bool) override { ++moves; }
  WeightsPort* weights() override { return port_.get(); }
  void save(base::StateWriter& out) const override { out.json("values", numbers_->values); }
  void load(base::StateReader& in) override { numbers_->values = in.json("values").get<std::vector<float>>(); }

 private:
  void suffer(int steps) const {
    if (steps != 2) return;
    if (context_->parameters.value("dies_on", -1) == context_->device) std::raise(SIGKILL);
    if (context_->parameters.value("fails_on", -1) == context_->device)
      throw base::GuardError(fmt::format("[toy policy] worker {} has had enough", context_->device));
  }
  void die_once(const char* key) const {
    const std::string marker = context_->parameters.value(key, "");
    if (marker.empty() || std::filesystem::exists(marker)) return;
    std::ofstream(marker) << "died";
    std::raise(SIGKILL);
  }

  std::shared_ptr<Numbers> numbers_;
  Context* context_ = nullptr;
  std::unique_ptr<NumbersPort> port_;
  int opened_ = 0;
  tensor::Buffer held_;
};

class Trainer : public Module {
 public:
  Trainer() { ++trainers_built; }
  std::vector<graph::FunctionSpec> functions() const override { return {train_spec()}; }
  void setup(Context& context) override {
    context_ = &context;
    numbers_ = context.shared<Numbers>("numbers", [] { return std::make_shared<Numbers>(); });
    port_ = std::make_unique<NumbersPort>(numbers_);
  }
  void train_step(const std::string&, std::span<const Batch> updates, const CallInfo& info) override {
    if (info.iteration == context_->parameters.value("die_at", int64_t{-1}) &&
        place() == context_->parameters.value("die_rank", place()))
      std::raise(SIGKILL);
    for (const Batch& update : updates) {
      std::vector<float> sum = {0.0F};
      for (int64_t i = 0; i < update.rows(); ++i)
        sum[0] += update.get(batch::kReward, i) + static_cast<float>(update.row(batch::kIds, i)[0]);
      comm::Group* ranks = context_->line("train", "dp");
      if (ranks != nullptr && !context_->parameters.contains("alone")) ranks->all_reduce(sum).wait(30);
      numbers_->values[0] += static_cast<float>(static_cast<int64_t>(sum[0]) % 5 + 1);
      ++numbers_->version;
      metrics_.push_back({"train/rows", static_cast<double>(update.rows()), Reduce::kSum});
      if (place() == 0) metrics_.push_back({"train/sum", sum[0], Reduce::kSum, 1.0});
    }
    metrics_.push_back({"train/weights", numbers_->values[0], Reduce::kLast, 1.0});
    context_->store->put("level", info.iteration + 1, numbers_->values[0]);
  }
  std::vector<Metric> metrics() override { return std::exchange(metrics_, {}); }
  // Each rank that is asked writes how many it has found in its line of tp.
  void save_checkpoint(const std::string& directory, int64_t) override {
    std::vector<float> ranks = {1.0F};
    if (comm::Group* line = context_->line("train", "tp")) line->all_reduce(ranks).wait(30);
    std::ofstream(fmt::format("{}/worker-{}", directory, context_->device)) << ranks[0];
  }
  WeightsPort* weights() override { return port_.get(); }
  void save(base::StateWriter& out) const override {
    out.json("values", numbers_->values);
    out.json("version", numbers_->version);
  }
  void load(base::StateReader& in) override {
    numbers_->values = in.json("values").get<std::vector<float>>();
    numbers_->version = in.json("version").get<uint64_t>();
  }

 private:
  // Among the ranks that train.
  int place() const {
    const std::vector<int>& ranks = context_->mesh("train").ranks();
    return static_cast<int>(std::find(ranks.begin(), ranks.end(), context_->device) - ranks.begin());
  }

  Context* context_ = nullptr;
  std::shared_ptr<Numbers> numbers_;
  std::unique_ptr<NumbersPort> port_;
  std::vector<Metric> metrics_;
};

// Reward: 2·ids[0] + ids[1], plus a random draw in {0 … 9} when the parameters say "random"; fails at a uid that they
// name, or the first "busy_times" times at another, in a way that may not happen again.
class Reward : public Module {
 public:
  explicit Reward(const nlohmann::json& parameters) : parameters_(parameters) {}
  std::vector<graph::FunctionSpec> functions() const override { return {score_spec(!parameters_.contains("random"))}; }
  void setup(Context& context) override { context_ = &context; }
  Batch call(const std::string&, const Batch& input, const CallInfo& info) override {
    ++reward_calls;
    std::this_thread::sleep_for(std::chrono::duration<double>(parameters_.value("sleep_seconds", 0.0)));
    Batch made(input.rows());
    std::vector<float> rewards;
    auto level = context_->store->get("level", info.iteration);
    if (!parameters_.value("levels", true)) level.reset();
    for (int64_t i = 0; i < input.rows(); ++i) {
      if (parameters_.value("fail_at", int64_t{-1}) == input.get(batch::kUid, i))
        throw base::GuardError(fmt::format("[toy reward] sample {} is bad", input.get(batch::kUid, i)));
      if (parameters_.value("busy_at", int64_t{-1}) == input.get(batch::kUid, i) &&
          busy_++ < parameters_.value("busy_times", 0))
        throw RetryableError(fmt::format("[toy reward] busy at sample {}", input.get(batch::kUid, i)));
      auto ids = input.row(batch::kIds, i);
      float random = parameters_.contains("random") ? static_cast<float>(device_() % 10) : 0.0F;
      rewards.push_back(2.0F * static_cast<float>(ids[0]) + (level ? level->get<float>() : 0.0F) + random);
    }
    made.set(batch::kReward, rewards);
    metrics_.push_back({"reward/asked", static_cast<double>(input.rows()), Reduce::kSum, 1.0});
    metrics_.push_back({"reward/highest", *std::max_element(rewards.begin(), rewards.end()), Reduce::kMax, 1.0});
    return made;
  }
  std::vector<Metric> metrics() override { return std::exchange(metrics_, {}); }

 private:
  std::vector<Metric> metrics_;
  nlohmann::json parameters_;
  Context* context_ = nullptr;
  int busy_ = 0;
  std::random_device device_;
};

// Drops every group whose first row has an even uid.
inline graph::FunctionSpec keep_spec() {
  graph::FunctionSpec spec = spec_of("keep", graph::Kind::kHost, {"reward"}, {"score"});
  spec.granularity = graph::Granularity::kGroup;
  spec.drops_rows = true;
  return spec;
}
inline Batch keep(const Batch& input, const CallInfo&, std::vector<Metric>& metrics) {
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < input.rows(); ++i)
    if (input.get(batch::kUid, i / 4 * 4) % 2 == 1) kept.push_back(i);
  metrics.push_back(
      {"keep/dropped", static_cast<double>(input.rows()) - static_cast<double>(kept.size()), Reduce::kSum, 1.0});
  Batch made = input.gather(kept);
  made.set(batch::kScore, std::vector<float>(kept.size(), 1.0F));
  return made;
}

inline Registry registry() {
  Registry registry;
  registry.add("policy", [](const nlohmann::json&) { return std::make_unique<Policy>(); });
  registry.add("trainer", [](const nlohmann::json&) { return std::make_unique<Trainer>(); });
  registry.add("reward", [](const nlohmann::json& parameters) { return std::make_unique<Reward>(parameters); });
  registry.add("keep", [](const nlohmann::json&) {
    auto module = std::make_unique<HostModule>();
    module->add(keep_spec(), keep);
    return module;
  });
  return registry;
}

inline graph::Graph flow(bool deterministic = true) {
  graph::ModelHandle policy("policy", {generate_spec()});
  graph::ModelHandle reward("reward", {score_spec(deterministic)});
  graph::ModelHandle trainer("trainer", {train_spec()});
  return graph::trace(
      [&](graph::Value prompts) {
        graph::Value completions = policy("generate", prompts);
        trainer.train(completions, reward("score", completions));
        graph::link(trainer, policy);
      },
      {{"prompts", {"uid", "prompt_uid"}}}, "toy");
}

// This flow has a filter between reward and training.
inline graph::Graph filtered_flow() {
  graph::ModelHandle policy("policy", {generate_spec()});
  graph::ModelHandle reward("reward", {score_spec(true)});
  graph::ModelHandle filter("keep", {keep_spec()});
  graph::ModelHandle trainer("trainer", {train_spec()});
  return graph::trace(
      [&](graph::Value prompts) {
        graph::Value completions = policy("generate", prompts);
        trainer.train(filter(reward("score", completions)));
        graph::link(trainer, policy);
      },
      {{"prompts", {"uid", "prompt_uid"}}}, "filtered");
}

inline Batch rows(int64_t iteration, int64_t first, int64_t count) {
  Batch made(count);
  std::vector<int64_t> uids, prompts;
  for (int64_t i = first; i < first + count; ++i) {
    uids.push_back(1000 * (iteration + 1) + 37 * i % 101);
    prompts.push_back(1000 * (iteration + 1) + i / 4);
  }
  made.set(batch::kUid, uids);
  made.set(batch::kPromptUid, prompts);
  return made;
}

// An evaluation of eight rows in groups of 4, by the flow that the function describes.
template <class Function>
Evaluation evaluation_of(const std::string& graph, Function&& function) {
  Evaluation evaluation;
  evaluation.graph = graph::trace(function, {{"prompts", {"uid", "prompt_uid"}}}, graph);
  evaluation.rows = 8;
  evaluation.group_size = 4;
  evaluation.next_rows = [](int64_t, int64_t first, int64_t count) { return rows(99, first, count); };
  return evaluation;
}

// Iterations of 12 rows in groups of 4.
inline RunOptions run_options(int64_t iterations) {
  RunOptions options;
  options.schedule.iterations = iterations;
  options.schedule.rows = 12;
  options.schedule.group_size = 4;
  options.config = nlohmann::json::object();
  options.next_rows = rows;
  options.deadline_seconds = 30;
  return options;
}

}  // namespace collimate::flow::toy
