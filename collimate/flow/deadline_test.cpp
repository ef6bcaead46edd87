#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "collimate/base/error.h"
#include "collimate/flow/payload.h"
#include "collimate/flow/task_key.h"
#include "collimate/flow/toy_modules.h"
#include "collimate/flow/worker_host.h"

namespace collimate::flow {
namespace {

constexpr double kShortDeadlineSeconds = 1.0;
constexpr int kWorkParts = 125;
constexpr std::chrono::milliseconds kPartTime{20};  // so that all parts take more than twice the deadline

// Once, what takes long; with "beats" it says after each part that it goes on.
class LongWork {
 public:
  explicit LongWork(const nlohmann::json& parameters) : beats_(parameters.contains("beats")) {}
  void run(const Context& context) {
    for (int part = 0; part < kWorkParts && !done_; ++part) {
      std::this_thread::sleep_for(kPartTime);
      if (beats_) context.progress();
    }
    done_ = true;
  }

 private:
  bool beats_;
  bool done_ = false;
};

class LongReward : public toy::Reward {
 public:
  explicit LongReward(const nlohmann::json& parameters) : Reward(parameters), work_(parameters) {}
  void setup(Context& context) override {
    context_ = &context;
    Reward::setup(context);
  }
  Batch call(const std::string& function, const Batch& input, const CallInfo& info) override {
    work_.run(*context_);
    return Reward::call(function, input, info);
  }

 private:
  Context* context_ = nullptr;
  LongWork work_;
};

// Rank 1 comes late to where the others wait for it.
class LateTrainer : public toy::Trainer {
 public:
  explicit LateTrainer(const nlohmann::json& parameters) : work_(parameters) {}
  void setup(Context& context) override {
    context_ = &context;
    Trainer::setup(context);
  }
  void train_step(const std::string& function, std::span<const Batch> updates, const CallInfo& info) override {
    if (context_->rank == 1) work_.run(*context_);
    Trainer::train_step(function, updates, info);
  }

 private:
  Context* context_ = nullptr;
  LongWork work_;
};

// Finishes no row in its first steps; without `works` they do nothing at all.
class LongStream : public toy::CountingStream {
 public:
  LongStream(std::shared_ptr<toy::Numbers> numbers, bool works, const CallInfo& info)
      : CountingStream(std::move(numbers), /*patient=*/false, info), works_(works) {}
  bool step() override {
    if (!works_) return false;
    if (++steps_ > kWorkParts) return CountingStream::step();
    std::this_thread::sleep_for(kPartTime);
    return true;
  }

 private:
  bool works_;
  int steps_ = 0;
};

class LongPolicy : public toy::Policy {
 public:
  explicit LongPolicy(const nlohmann::json& parameters) : works_(parameters.contains("beats")) {}
  void setup(Context& context) override {
    Policy::setup(context);
    numbers_ = context.shared<toy::Numbers>("numbers", [] { return std::make_shared<toy::Numbers>(); });
  }
  std::unique_ptr<Stream> open(const std::string&, const CallInfo& info) override {
    return std::make_unique<LongStream>(numbers_, works_, info);
  }

 private:
  bool works_;
  std::shared_ptr<toy::Numbers> numbers_;
};

template <class Made>
std::unique_ptr<Module> made_of(const nlohmann::json& parameters) {
  return std::make_unique<Made>(parameters);
}

Registry long_registry() {
  Registry registry = toy::registry();
  registry.add("long policy", made_of<LongPolicy>);
  registry.add("long reward", made_of<LongReward>);
  registry.add("late trainer", made_of<LateTrainer>);
  return registry;
}

// How a run of one iteration ends in which `model` is of `kind`: its error, or "done".
std::string end_of_run(const std::string& model, const std::string& kind, bool beats, int devices = 1) {
  RunOptions options = toy::run_options(1);
  options.deadline_seconds = kShortDeadlineSeconds;
  options.modules[model] = {kind, nlohmann::json::object()};
  if (beats) options.modules[model].parameters["beats"] = true;
  const graph::Graph graph = toy::flow();
  const Registry registry = long_registry();
  try {
    run(graph, graph::flattening(graph, devices), registry, options);
  } catch (const base::RunError& error) {
    return error.what();
  }
  return "done";
}

void expect_no_progress(const std::string& text, const std::string& who) {
  EXPECT_NE(text.find(fmt::format("no progress for {} s (run.deadline_seconds)", kShortDeadlineSeconds)),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(who), std::string::npos) << text;
}

TEST(Deadline, ACallLongerThanItLivesByItsHeartbeats) {
  EXPECT_EQ(end_of_run("reward", "long reward", true), "done");
  expect_no_progress(end_of_run("reward", "long reward", false), "reward.score");
}

TEST(Deadline, AStreamWithoutFinishedRowsLivesAsLongAsItWorks) {
  EXPECT_EQ(end_of_run("policy", "long policy", true), "done");
  expect_no_progress(end_of_run("policy", "long policy", false), "policy.generate");
}

// Both the driver and rank 0, at the all-reduce, wait for rank 1; either may say so first.
TEST(Deadline, ARankThatIsLateLivesByItsHeartbeats) {
  EXPECT_EQ(end_of_run("trainer", "late trainer", true, 2), "done");
  const std::string text = end_of_run("trainer", "late trainer", false, 2);
  EXPECT_NE(text.find("no progress "), std::string::npos) << text;
  EXPECT_NE(text.find("s (run.deadline_seconds)"), std::string::npos) << text;
}

// Says ten thousand times that it goes on, and puts a value into the store.
class EagerReward : public toy::Reward {
 public:
  explicit EagerReward(const nlohmann::json& parameters) : Reward(parameters) {}
  void setup(Context& context) override {
    context_ = &context;
    Reward::setup(context);
  }
  Batch call(const std::string& function, const Batch& input, const CallInfo& info) override {
    context_->store->put("level", 0, 1.0);
    for (int i = 0; i < 10000; ++i) context_->progress();
    return Reward::call(function, input, info);
  }

 private:
  Context* context_ = nullptr;
};

class Replies : public cluster::Outbox {
 public:
  void send(cluster::Message message) override { messages.push_back(std::move(message)); }
  std::vector<cluster::Message> messages;
};

// What the worker of the reward answers to one feed of rows.
std::vector<cluster::Message> replies_of_reward() {
  const graph::Graph graph = toy::flow();
  cluster::WorkerSpec spec;
  spec.config = "{}";
  spec.graph = graph::text(graph);
  spec.placement = graph::json_text(graph::flattening(graph, 1));
  spec.options = R"({"seed": 1, "run": "beats", "modules": {"reward": {"kind": "eager"}}, "calls": {}})";
  spec.rank = 1;  // behind the device: the host worker
  Registry registry = toy::registry();
  registry.add("eager", made_of<EagerReward>);
  WorkerHost host(spec, registry);
  Replies out;
  cluster::Message message;
  const nlohmann::json task = to_json(TaskKey{});
  message.header = {{"type", "start"},   {"task", task},        {"node", "reward.score"},
                    {"model", "reward"}, {"function", "score"}, {"parameters", {}},
                    {"trains", false},   {"streams", false},    {"rank", 0}};
  host.handle(message, out);
  Batch rows = toy::rows(0, 0, 1);
  rows.set_ragged(batch::kIds, {{1, 2, 3}});
  message.header = {{"type", "feed"}, {"task", task}, {"feed", 0}};
  message.payload = std::make_shared<BatchPayload>(std::vector<Batch>{rows});
  host.handle(message, out);
  return std::move(out.messages);
}

TEST(Deadline, HeartbeatsAreFewAndBringNoNews) {
  std::vector<cluster::Message> messages;
  std::thread([&] { messages = replies_of_reward(); }).join();  // a worker tags its thread's memory
  ASSERT_GE(messages.size(), 2U);
  EXPECT_LE(messages.size(), 6U) << "one a second, and the rows";
  EXPECT_EQ(messages.back().type(), "rows");
  EXPECT_TRUE(messages.back().header.contains("store"));
  messages.pop_back();
  for (const cluster::Message& message : messages) EXPECT_EQ(message.header, (nlohmann::json{{"type", "heartbeat"}}));
}

}  // namespace
}  // namespace collimate::flow
