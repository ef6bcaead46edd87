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
#include "collimate/flow/dist_actor.h"
#include "collimate/flow/planned_memory.h"
#include "collimate/flow/worker_host.h"
#include "collimate/flow/worker_options.h"

namespace collimate::flow {
namespace {

constexpr int kMostLives = 4;
constexpr size_t kMailboxMessages = 64;
constexpr double kStopSeconds = 10.0;

std::map<std::string, WorkerModule> module_choices(const RunOptions& options) {
  std::map<std::string, WorkerModule> choices;
  for (const auto& [model, choice] : options.modules)
    choices[model] = {choice.kind, choice.parameters, choice.in_place};
  return choices;
}

std::string unique_run_name() {
  static std::atomic<int> runs{0};
  return fmt::format("run-{}-{}", getpid(), runs++);
}

// Returns the back end for collectives of such workers.
const comm::BackEnd& back_end_of(Transport transport) {
  return comm::back_end(transport == Transport::kProcesses ? "shm" : "threads");
}

std::string swap_directory(const RunOptions& options) {
  if (!options.swap_directory.empty()) return options.swap_directory;
  return options.directory.empty() ? std::filesystem::temp_directory_path().string() : options.directory;
}

cluster::WorkerSpec make_spec(const graph::Graph& graph, const graph::Placement& placement, const RunOptions& options,
                              const comm::GroupStore& store) {
  const WorkerOptions told{.seed = options.seed,
                           .run = unique_run_name(),
                           .modules = module_choices(options),
                           .calls = calls_of(graph, options),
                           .back_end = back_end_of(options.transport).name,
                           .group_store = store.address(),
                           .threads_per_worker = options.threads_per_worker,
                           .memory_budget_bytes = options.memory_budget_bytes,
                           .swap_directory = swap_directory(options),
                           .times_operations = options.on_call != nullptr,
                           .deadline_seconds = options.deadline_seconds};
  cluster::WorkerSpec spec;
  spec.config = options.config.dump();
  spec.graph = graph::text(graph);
  spec.placement = graph::json_text(placement);
  spec.options = nlohmann::json(told).dump();
  return spec;
}

std::set<int> bound_workers(const graph::Graph& graph, const graph::Placement& placement) {
  std::set<int> bound;
  for (const auto& [model, content] : graph.models)
    for (const int worker : graph::workers_of(graph, placement, model))
      for (const auto& [function, mesh] : meshes_of(graph, placement, model, worker))
        if (mesh.size() > 1) bound.insert(worker);
  return bound;
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

void throw_if_died(const Received& received) {
  if (const auto* died = std::get_if<cluster::Died>(&received.content)) throw_failure(died->cause, died->exit_code);
}

// Returns the number of the request that a message answers, or 0 where it is no answer.
int64_t request_of(const message::ToDriver& content) {
  return std::visit(
      [](const auto& said) -> int64_t {
        if constexpr (requires { said.request; }) return said.request;
        return 0;
      },
      content);
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
      group_store_(back_end_of(options.transport).open_store()),
      spec_(make_spec(graph, placement, options, *group_store_)),
      bound_(bound_workers(graph, placement)),
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
    const std::optional<Received> received = receive(0.2, waiting);
    if (!received) continue;
    throw_if_died(*received);
    if (std::holds_alternative<cluster::Ready>(received->content)) base::at(ready, received->worker) = true;
  }
}

bool Driver::restart(int worker) {
  Slot& slot = base::at(slots_, worker);
  if (options_.transport != Transport::kProcesses || slot.lives >= kMostLives || bound_.contains(worker)) return false;
  slot.link->stop(0);
  slot.unsent.clear();
  slot.news = store_.all();
  ++slot.lives;
  start(worker, slot.link->incarnation() + 1);
  return true;
}

void Driver::post(int worker, cluster::Message message) {
  Slot& slot = base::at(slots_, worker);
  if (!slot.news.empty()) queue(slot, cluster::message_of(message::Puts{std::exchange(slot.news, {})}));
  queue(slot, std::move(message));
  flush();
}

void Driver::queue(Slot& slot, cluster::Message message) {
  message.incarnation = slot.link->incarnation();
  slot.unsent.push_back(reparse_ ? cluster::reparse(message) : std::move(message));
}

void Driver::flush() {
  for (Slot& slot : slots_)
    while (!slot.unsent.empty() && slot.link->inbox().try_push(slot.unsent.front())) slot.unsent.pop_front();
}

void Driver::note(int worker, const message::Puts& puts) {
  store_.apply(puts.entries);
  for (int other = 0; other < workers(); ++other) {
    std::vector<StoreEntry>& news = base::at(slots_, other).news;
    if (other != worker) news.insert(news.end(), puts.entries.begin(), puts.entries.end());
  }
}

std::optional<Received> Driver::next(double seconds) {
  flush();
  std::optional<cluster::Message> message = inbox_->pop(seconds);
  flush();
  if (!message) return std::nullopt;
  last_progress_ = base::now_seconds();
  const int worker = message->sender;
  if (message->incarnation != base::at(slots_, worker).link->incarnation()) return std::nullopt;
  if (reparse_) message = cluster::reparse(*message);
  Received received{worker, cluster::content_of<message::ToDriver>(std::move(*message))};
  if (std::holds_alternative<message::Heartbeat>(received.content)) return std::nullopt;
  const auto* puts = std::get_if<message::Puts>(&received.content);
  if (puts == nullptr) return received;
  note(worker, *puts);
  return std::nullopt;
}

std::optional<Received> Driver::receive(double seconds, const std::function<std::string()>& waiting) {
  if (!deferred_.empty()) {
    std::optional<Received> received = std::move(deferred_.front());
    deferred_.pop_front();
    return received;
  }
  return next_in_time(seconds, waiting);
}

std::optional<Received> Driver::next_in_time(double seconds, const std::function<std::string()>& waiting) {
  const double before = base::now_seconds();  // messages that come while this thread does not run count as progress
  std::optional<Received> received = next(seconds);
  if (!received && before - last_progress_ > options_.deadline_seconds) expired(waiting());
  return received;
}

void Driver::expired(const std::string& waiting) const {
  std::string text =
      fmt::format("[driver] no progress for {} s (run.deadline_seconds): {}", options_.deadline_seconds, waiting);
  for (size_t i = 0; i < slots_.size(); ++i)
    text += fmt::format("\n  worker {} ({}): {} messages not read, {} not sent", i, slots_[i].link->describe(),
                        slots_[i].link->inbox().size(), slots_[i].unsent.size());
  throw base::RunError(text);
}

std::vector<Received> Driver::answers_to(int64_t request, const char* kind, const std::vector<int>& to) {
  std::vector<Received> answers(to.size());
  size_t missing = to.size();
  auto waiting = [&] { return fmt::format("{} of {} workers have not answered {}", missing, to.size(), kind); };
  while (missing > 0) {
    std::optional<Received> received = next_in_time(0.2, waiting);
    if (!received) continue;
    auto place = std::find(to.begin(), to.end(), received->worker);
    if (place != to.end()) throw_if_died(*received);
    if (request_of(received->content) != request) {
      deferred_.push_back(std::move(*received));
      continue;
    }
    base::at(answers, place - to.begin()) = std::move(*received);
    --missing;
  }
  return answers;
}

}  // namespace collimate::flow
