#include "collimate/flow/driver.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "collimate/base/at.h"
#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/base/log.h"
#include "collimate/cluster/local/thread_worker.h"
#include "collimate/cluster/process/process_worker.h"
#include "collimate/cluster/reparse.h"
#include "collimate/flow/planned_memory.h"
#include "collimate/flow/worker_host.h"

namespace collimate::flow {
namespace {

constexpr int kMostLives = 4;
constexpr size_t kMailboxMessages = 64;
constexpr double kStopSeconds = 10.0;

nlohmann::json module_choices(const RunOptions& options) {
  nlohmann::json choices = nlohmann::json::object();
  for (const auto& [model, choice] : options.modules)
    choices[model] = {{"kind", choice.kind}, {"parameters", choice.parameters}};
  return choices;
}

std::string unique_run_name() {
  static std::atomic<int> runs{0};
  return fmt::format("run-{}-{}", getpid(), runs++);
}

cluster::WorkerSpec make_spec(const graph::Graph& graph, const graph::Placement& placement, const RunOptions& options) {
  nlohmann::json texts = {{"seed", options.seed},
                          {"run", unique_run_name()},
                          {"modules", module_choices(options)},
                          {"calls", calls_of(graph, options)},
                          {"threads", options.transport == Transport::kThreads},
                          {"threads_per_worker", options.threads_per_worker},
                          {"memory_budget_bytes", options.memory_budget_bytes},
                          {"times_operations", options.on_call != nullptr},
                          {"deadline_seconds", options.deadline_seconds}};
  cluster::WorkerSpec spec;
  spec.config = options.config.dump();
  spec.graph = graph::text(graph);
  spec.placement = graph::json_text(placement);
  spec.options = texts.dump();
  return spec;
}

void check_pins(const graph::Graph& graph, const Registry& registry, const RunOptions& options) {
  for (const auto& [model, content] : graph.models) {
    auto choice = options.modules.find(model);
    const std::string& kind = choice == options.modules.end() ? model : choice->second.kind;
    if (registry.pinned(kind) && options.transport == Transport::kProcesses)
      throw base::InputError(base::expectation("model " + model, "a module that a worker process can make",
                                               kind + ", which was given in process", "workers as threads"));
  }
}

}  // namespace

void throw_failure(const std::string& cause, int exit_code) {
  if (exit_code == 2) throw base::InputError(cause);
  if (exit_code == 3) throw base::StoppedError(cause);
  if (exit_code == 4) throw base::GuardError(cause);
  throw base::RunError(cause);
}

Driver::Driver(const graph::Graph& graph, const graph::Placement& placement, const Registry& registry,
               const RunOptions& options)
    : registry_(std::make_shared<const Registry>(registry)),
      options_(options),
      spec_(make_spec(graph, placement, options)),
      inbox_(std::make_shared<cluster::Mailbox>(kMailboxMessages)),
      slots_(static_cast<size_t>(graph::worker_count(graph, placement))),
      reparse_(base::reparse_every_run()),
      last_progress_(base::now_seconds()) {
  check_pins(graph, registry, options);
  inbox_->on_space([this] {
    for (Slot& slot : slots_)
      if (slot.link) slot.link->inbox().poke();
  });
  for (int worker = 0; worker < workers(); ++worker) start(worker, 1);
  try {
    wait_ready();
  } catch (...) {
    stop();
    throw;
  }
}

Driver::~Driver() { stop(); }

void Driver::stop() {
  inbox_->close();
  for (Slot& slot : slots_)
    if (slot.link) slot.link->inbox().close();
  for (Slot& slot : slots_)
    if (slot.link) slot.link->stop(std::min(kStopSeconds, options_.deadline_seconds));
}

void Driver::start(int worker, uint64_t incarnation) {
  cluster::WorkerSpec spec = spec_;
  spec.rank = worker;
  spec.incarnation = incarnation;
  Slot& slot = base::at(slots_, worker);
  if (options_.transport == Transport::kProcesses) {
    slot.link = cluster::start_process_worker(spec, options_.worker_command, kMailboxMessages, inbox_);
    return;
  }
  if (reparse_) spec = cluster::reparse(spec);
  auto make = [known = registry_](const cluster::WorkerSpec& s) { return std::make_unique<WorkerHost>(s, *known); };
  slot.link = cluster::start_thread_worker(spec, make, kMailboxMessages, inbox_);
}

void Driver::wait_ready() {
  std::vector<bool> ready(slots_.size());
  auto waiting = [&] {
    std::string text = "setup of";
    for (size_t i = 0; i < ready.size(); ++i)
      if (!ready[i]) text += fmt::format(" worker {}", i);
    return text;
  };
  while (std::find(ready.begin(), ready.end(), false) != ready.end()) {
    std::optional<cluster::Message> message = receive(0.2, waiting);
    if (!message) continue;
    if (message->type() == "died") throw_failure(message->header.at("cause"), message->header.value("exit_code", 1));
    if (message->type() == "ready") base::at(ready, message->sender) = true;
  }
}

bool Driver::restart(int worker) {
  Slot& slot = base::at(slots_, worker);
  if (options_.transport != Transport::kProcesses || slot.lives >= kMostLives) return false;
  slot.link->stop(0);
  slot.unsent.clear();
  slot.news = store_.all();
  ++slot.lives;
  start(worker, slot.link->incarnation() + 1);
  return true;
}

void Driver::send(int worker, nlohmann::json header, std::shared_ptr<const cluster::Payload> payload) {
  Slot& slot = base::at(slots_, worker);
  cluster::Message message;
  message.header = std::move(header);
  if (!slot.news.empty()) message.header["store"] = std::exchange(slot.news, {});
  message.incarnation = slot.link->incarnation();
  message.payload = std::move(payload);
  if (reparse_) message = cluster::reparse(message);
  slot.unsent.push_back(std::move(message));
  flush();
}

void Driver::flush() {
  for (Slot& slot : slots_)
    while (!slot.unsent.empty() && slot.link->inbox().try_push(slot.unsent.front())) slot.unsent.pop_front();
}

void Driver::note_store(const cluster::Message& message) {
  if (!message.header.contains("store")) return;
  std::vector<StoreEntry> entries = message.header["store"];
  store_.apply(entries);
  for (int worker = 0; worker < workers(); ++worker) {
    std::vector<StoreEntry>& news = base::at(slots_, worker).news;
    if (worker != message.sender) news.insert(news.end(), entries.begin(), entries.end());
  }
}

std::optional<cluster::Message> Driver::next(double seconds) {
  flush();
  std::optional<cluster::Message> message = inbox_->pop(seconds);
  flush();
  if (!message) return std::nullopt;
  last_progress_ = base::now_seconds();
  const Slot& slot = base::at(slots_, message->sender);
  if (message->incarnation != slot.link->incarnation()) return std::nullopt;
  if (reparse_) message = cluster::reparse(*message);
  note_store(*message);
  if (message->type() == "heartbeat") return std::nullopt;
  return message;
}

std::optional<cluster::Message> Driver::receive(double seconds, const std::function<std::string()>& waiting) {
  if (!deferred_.empty()) {
    std::optional<cluster::Message> message = std::move(deferred_.front());
    deferred_.pop_front();
    return message;
  }
  return next_in_time(seconds, waiting);
}

std::optional<cluster::Message> Driver::next_in_time(double seconds, const std::function<std::string()>& waiting) {
  const double before = base::now_seconds();  // whatever comes while this thread does not run is progress
  std::optional<cluster::Message> message = next(seconds);
  if (!message && before - last_progress_ > options_.deadline_seconds) expired(waiting());
  return message;
}

void Driver::expired(const std::string& waiting) const {
  std::string text =
      fmt::format("[driver] no progress for {} s (run.deadline_seconds): {}", options_.deadline_seconds, waiting);
  for (size_t i = 0; i < slots_.size(); ++i)
    text += fmt::format("\n  worker {} ({}): {} messages not read, {} not sent", i, slots_[i].link->describe(),
                        slots_[i].link->inbox().size(), slots_[i].unsent.size());
  throw base::RunError(text);
}

std::vector<cluster::Message> Driver::request(const std::vector<int>& to, nlohmann::json header,
                                              std::shared_ptr<const cluster::Payload> payload) {
  int64_t number = next_request_++;
  header["request"] = number;
  for (int worker : to) send(worker, header, payload);
  std::vector<cluster::Message> answers(to.size());
  size_t missing = to.size();
  auto waiting = [&] {
    return fmt::format("{} of {} workers have not answered {}", missing, to.size(), header.value("type", ""));
  };
  while (missing > 0) {
    std::optional<cluster::Message> message = next_in_time(0.2, waiting);
    if (!message) continue;
    auto place = std::find(to.begin(), to.end(), message->sender);
    bool answer = message->type() == "done" && message->header.value("request", int64_t{0}) == number;
    if (message->type() == "died" && place != to.end())
      throw_failure(message->header.at("cause"), message->header.value("exit_code", 1));
    if (!answer) {
      deferred_.push_back(std::move(*message));
      continue;
    }
    base::at(answers, place - to.begin()) = std::move(*message);
    --missing;
  }
  return answers;
}

}  // namespace collimate::flow
