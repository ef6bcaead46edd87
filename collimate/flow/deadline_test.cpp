#include "collimate/base/deadline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/immovable.h"
#include "collimate/flow/messages.h"
#include "collimate/flow/worker_host.h"
#include "tests/support/flow/toy_modules.h"

namespace collimate::flow {
namespace {

constexpr double kDeadlineSeconds = 0.5;
constexpr double kPartSeconds = kDeadlineSeconds / 4;
constexpr int kWorkParts = 20;  // together longer than the deadline

// The time of one run, which stands still but for what is told here. Work that beats moves it itself, part by part;
// under work that does not, it goes on by itself until the run has ended.
class RunTime {
 public:
  void pass_a_part() {
    clock_.advance(kPartSeconds);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // in which others look at the clock
  }
  void note_poll() { ++polls_; }
  int polls() const { return polls_; }
  bool over() const { return over_; }
  void begin_silence() { silent_ = true; }
  void wait_for_end() {
    begin_silence();
    while (!over_) std::this_thread::yield();
  }
  // Returns when no work is left.
  void end() {
    over_ = true;
    passing_.join();
    while (works_ > 0) std::this_thread::yield();
  }
  void note_work(int more) { works_ += more; }

 private:
  void pass() {
    while (!over_) silent_ ? pass_a_part() : std::this_thread::yield();
  }

  base::ManualClock clock_;
  std::atomic<int> works_{0}, polls_{0};
  std::atomic<bool> silent_{false}, over_{false};
  std::thread passing_{[this] { pass(); }};
};

// This takes long, once; with "beats" it says after each part that it goes on.
class LongWork : private base::Immovable {
 public:
  LongWork(RunTime& time, const nlohmann::json& parameters) : time_(time), beats_(parameters.contains("beats")) {
    time_.note_work(1);
  }
  ~LongWork() { time_.note_work(-1); }
  bool beats() const { return beats_; }
  RunTime& time() { return time_; }
  void run(const Context& context) {
    if (std::exchange(done_, true)) return;
    if (!beats_) return time_.wait_for_end();
    while (does_a_part()) context.progress();
  }
  // The work takes longer than the deadline, and ends only when the driver has looked at the clock often after that.
  bool does_a_part() {
    if (time_.over() || (parts_ > kWorkParts && time_.polls() >= late_poll_ + 10)) return false;
    if (parts_++ == kWorkParts) late_poll_ = time_.polls();
    time_.pass_a_part();
    return true;
  }

 private:
  RunTime& time_;
  bool beats_;
  bool done_ = false;
  int parts_ = 0, late_poll_ = 0;
};

class LongReward : public toy::Reward {
 public:
  LongReward(RunTime& time, const nlohmann::json& parameters) : Reward(parameters), work_(time, parameters) {}
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
  LateTrainer(RunTime& time, const nlohmann::json& parameters) : work_(time, parameters) {}
  void setup(Context& context) override {
    context_ = &context;
    Trainer::setup(context);
  }
  void train_step(const std::string& function, std::span<const Batch> updates, const CallInfo& info) override {
    if (context_->mesh("train").coordinate(context_->device, "dp") == 1) work_.run(*context_);
    Trainer::train_step(function, updates, info);
  }

 private:
  Context* context_ = nullptr;
  LongWork work_;
};

// Finishes no row in its first steps; without beats they do nothing at all.
class LongStream : public toy::CountingStream {
 public:
  LongStream(std::shared_ptr<toy::Numbers> numbers, LongWork& work, const CallInfo& info)
      : CountingStream(std::move(numbers), /*patient=*/false, info), work_(work) {}
  bool step() override {
    if (!work_.beats()) {
      work_.time().begin_silence();
      return false;
    }
    return work_.does_a_part() || CountingStream::step();
  }

 private:
  LongWork& work_;
};

class LongPolicy : public toy::Policy {
 public:
  LongPolicy(RunTime& time, const nlohmann::json& parameters) : work_(time, parameters) {}
  void setup(Context& context) override {
    Policy::setup(context);
    numbers_ = context.shared<toy::Numbers>("numbers", [] { return std::make_shared<toy::Numbers>(); });
  }
  std::unique_ptr<Stream> open(const std::string&, const CallInfo& info) override {
    return std::make_unique<LongStream>(numbers_, work_, info);
  }

 private:
  LongWork work_;
  std::shared_ptr<toy::Numbers> numbers_;
};

template <class Made>
void add_long(Registry& registry, const std::string& kind, RunTime& time) {
  registry.add(kind, [&time](const nlohmann::json& parameters) { return std::make_unique<Made>(time, parameters); });
}

Registry long_registry(RunTime& time) {
  Registry registry = toy::registry();
  add_long<LongPolicy>(registry, "long policy", time);
  add_long<LongReward>(registry, "long reward", time);
  add_long<LateTrainer>(registry, "late trainer", time);
  return registry;
}

// How a run of one iteration ends in which `model` is of `kind`: its error, or "done".
std::string end_of_run(const std::string& model, const std::string& kind, bool beats, int devices = 1) {
  RunTime time;
  RunOptions options = toy::run_options(1);
  options.deadline_seconds = kDeadlineSeconds;
  options.on_poll = [&time] { time.note_poll(); };
  options.modules[model] = {kind, nlohmann::json::object()};
  if (beats) options.modules[model].parameters["beats"] = true;
  const graph::Graph graph = toy::flow();
  const Registry registry = long_registry(time);
  std::string end = "done";
  try {
    run(graph, graph::flattening(graph, devices), registry, options);
  } catch (const base::RunError& error) {
    end = error.what();
  }
  time.end();
  return end;
}

void expect_no_progress(const std::string& text, const std::string& who) {
  EXPECT_NE(text.find(fmt::format("no progress for {} s (run.deadline_seconds)", kDeadlineSeconds)), std::string::npos)
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

// Gives what the worker of the reward answers to one feed of rows.
std::vector<cluster::Message> replies_of_reward() {
  const graph::Graph graph = toy::flow();
  cluster::WorkerSpec spec;
  spec.config = "{}";
  spec.graph = graph::text(graph);
  spec.placement = graph::json_text(graph::flattening(graph, 1));
  spec.options = nlohmann::json(WorkerOptions{.seed = 1, .run = "beats", .modules = {{"reward", {"eager"}}}}).dump();
  spec.rank = 1;  // behind the device: the host worker
  Registry registry = toy::registry();
  registry.add("eager", [](const nlohmann::json& parameters) { return std::make_unique<EagerReward>(parameters); });
  WorkerHost host(spec, registry);
  Replies out;
  host.handle(cluster::message_of(message::Start{.node = "reward.score", .model = "reward", .function = "score"}), out);
  Batch rows = toy::rows(0, 0, 1);
  rows.set_ragged(batch::kIds, {{1, 2, 3}});
  host.handle(cluster::message_of(message::Feed{.batches = {rows}}), out);
  return std::move(out.messages);
}

TEST(Deadline, HeartbeatsAreFewAndBringNoNews) {
  const base::ManualClock clock;  // no time passes between them
  std::vector<cluster::Message> messages;
  std::thread([&] { messages = replies_of_reward(); }).join();  // a worker tags its thread's memory
  std::vector<std::string> kinds;
  for (const cluster::Message& message : messages) kinds.push_back(message.kind());
  EXPECT_THAT(kinds, testing::ElementsAre("heartbeat", "puts", "rows")) << "one a second, and the rows with the news";
}

}  // namespace
}  // namespace collimate::flow
