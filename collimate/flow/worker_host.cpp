#include "collimate/flow/worker_host.h"

#include <algorithm>
#include <type_traits>

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/base/log.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/flow/received_rows.h"

namespace collimate::flow {
namespace {

// Adds the uid column of the input to a result that has none but as many rows.
Batch with_uids(Batch made, const Batch& input, const CallInfo& info) {
  const std::string& uid = batch::kUid.name;
  if (made.has(uid) || !input.has(uid) || (made.rows() == 0 && input.rows() != 0 && made.names().empty())) return made;
  if (made.rows() != input.rows())
    throw base::RunError(base::expectation("node " + info.node, fmt::format("{} rows, or rows with uids", input.rows()),
                                           fmt::format("{} rows without", made.rows())));
  std::vector<std::string> names = {uid};
  return input.select_columns(names).merge(made);
}

int exit_code_of(const std::exception& error) {
  auto known = dynamic_cast<const base::Error*>(&error);
  return known == nullptr ? 1 : known->exit_code();
}

// Ranks that differ on these axes step together: those on kExperts over rows of their own, the others over the same
// rows.
constexpr const char* kSteppedTogether[] = {"pp", "cp", "tp", kExperts};

// Says whether a message may be handled while a stream has requests to carry out: a feed, a close, a pause or an end,
// which are such requests, and puts.
template <class Asked>
constexpr bool concerns_streams() {
  return std::is_same_v<Asked, message::Feed> || std::is_same_v<Asked, message::Close> ||
         std::is_same_v<Asked, message::Cancel> || std::is_same_v<Asked, message::Pause> ||
         std::is_same_v<Asked, message::Puts>;
}

}  // namespace

WorkerHost::Hosted& WorkerHost::hosted(const std::string& model) {
  auto found = models_.find(model);
  COLLIMATE_CHECK(found != models_.end(), "worker {} has no model {}", spec_.rank, model);
  return *found->second;
}

template <class Said>
void WorkerHost::reply(Said said) {
  std::vector<StoreEntry> fresh = store_.drain();
  if (!fresh.empty()) out_->send(cluster::message_of(message::Puts{std::move(fresh)}));
  out_->send(cluster::message_of(std::move(said)));
}

void WorkerHost::handle(cluster::Message message, cluster::Outbox& out) {
  base::fault_count("worker.message", 1);
  out_ = &out;
  shares_rows_ = message.content != nullptr;
  const auto content = cluster::content_of<message::ToWorker>(std::move(message));
  try {
    std::visit([this](const auto& asked) { obey(asked); }, content);
  } catch (const std::exception& error) {  // this ends the worker
    for (const auto& [model, hosted] : models_) hosted->groups.abort(error.what());
    throw;
  }
}

template <class Asked>
void WorkerHost::obey(const Asked& asked) {
  if constexpr (!concerns_streams<Asked>()) settle();
  if constexpr (requires { asked.task; }) {
    try {
      on(asked);
    } catch (const std::exception& error) {
      fail(asked.task, error);
    }
  } else if constexpr (requires { asked.request; }) {
    typename Asked::Answer answer = on(asked);
    answer.request = asked.request;
    reply(std::move(answer));
  } else {
    on(asked);
  }
}

void WorkerHost::fail(const graph::Task& key, const std::exception& error) {
  bool retryable = dynamic_cast<const RetryableError*>(&error) != nullptr;
  if (const auto found = tasks_.find(key); found != tasks_.end()) {
    Hosted& hosted = *found->second->hosted;
    retryable = retryable && hosted.context.mesh(found->second->function).size() == 1;
    if (!retryable) abort_groups(hosted, error.what());
    drop(key);
  }
  const bool follows = dynamic_cast<const comm::AbortedByPeer*>(&error) != nullptr;
  reply(message::Failed{key, error.what(), exit_code_of(error), retryable, follows});
}

// Aborts the groups of a model and of models with the same weights, as ranks may wait for each other in these.
void WorkerHost::abort_groups(const Hosted& failed, const std::string& cause) {
  const WeightsPort* weights = failed.module->weights();
  for (const auto& [model, hosted] : models_) {
    const WeightsPort* other = hosted->module->weights();
    const bool same = weights != nullptr && other != nullptr && weights->identity() == other->identity();
    if (same || hosted.get() == &failed) hosted->groups.abort(cause);
  }
}

// Ends a task that is cancelled or has failed, and cancels what its stream still works on.
void WorkerHost::drop(const graph::Task& key) {
  auto found = tasks_.find(key);
  if (found == tasks_.end()) return;
  std::unique_ptr<Running> task = std::move(found->second);
  tasks_.erase(found);
  if (!task->stream) return;
  try {
    task->stream->cancel(task->fed);
  } catch (const std::exception& error) {
    base::log_warning("worker {}: cancelling {}: {}", spec_.rank, task->info.node, error.what());
  }
}

// Gives a sign of life from inside long work, for the driver and for the ranks that wait for this one. It sends no puts
// of the store, because when they become known must not depend on the clock.
void WorkerHost::beat() {
  for (const auto& [model, hosted] : models_) hosted->groups.beat();
  const double now = base::now_seconds();
  if (out_ == nullptr || now - last_beat_ < beat_seconds_) return;
  last_beat_ = now;
  out_->send(cluster::message_of(message::Heartbeat()));
}

// Checks after training that ranks with the same part of the weights have equal values. Otherwise gradients were not
// reduced.
void WorkerHost::check_ranks_agree(Running& task) {
  const Context& context = task.hosted->context;
  WeightsPort* weights = task.hosted->module->weights();
  comm::Group* line = context.copies(task.function);
  if (weights == nullptr || line == nullptr) return;
  std::vector<uint64_t> mine = {weights->checksum()}, all(static_cast<size_t>(line->size()));
  line->all_gather(comm::bytes_of(mine), comm::writable_bytes_of(all)).wait(context.deadline_seconds);
  for (uint64_t other : all)
    if (other != mine[0])
      throw base::GuardError(base::expectation(
          "model " + task.model, "equal weights on all dp and cp ranks after training",
          fmt::format("checksums {:016x}", fmt::join(all, ", ")), "reducing gradients over the context's copies"));
}

void WorkerHost::on(const message::Start& start) {
  auto task = std::make_unique<Running>();
  task->key = start.task;
  task->model = start.model;
  task->function = start.function;
  task->hosted = &hosted(task->model);
  task->trains = start.trains;
  task->info.iteration = start.iteration;
  task->info.node = start.node;
  task->info.replica = task->key.replica;
  task->info.part = task->key.part;
  task->info.rank = start.rank;
  task->info.parameters = start.parameters;
  Running& running = *task;
  tasks_[running.key] = std::move(task);
  if (start.streams) open(running);
}

void WorkerHost::open(Running& task) {
  const Context& context = task.hosted->context;
  task.stream = task.hosted->module->open(task.function, task.info);
  Lockstep::Ranks ranks{.lines = {},
                        .apart = context.line(task.function, kExperts) != nullptr,
                        .deadline_seconds = context.deadline_seconds};
  for (const char* axis : kSteppedTogether)
    if (comm::Group* line = context.line(task.function, axis)) ranks.lines.push_back(line);
  if (ranks.lines.empty()) return;
  auto together = std::make_unique<Lockstep>(std::move(task.stream), std::move(ranks));
  task.lockstep = together.get();
  task.stream = std::move(together);
}

void WorkerHost::on(const message::Cancel& cancel) {
  auto found = tasks_.find(cancel.task);
  if (found != tasks_.end() && found->second->lockstep != nullptr) return found->second->lockstep->end();
  drop(cancel.task);
}

void WorkerHost::on(const message::Feed& feed) {
  auto found = tasks_.find(feed.task);
  if (found == tasks_.end()) return;  // it failed here before this message came
  Running& task = *found->second;
  const std::vector<Batch>& batches = feed.batches;
  const ReceivedRows received(batches, spec_.rank, shares_rows_);
  if (task.stream) {
    task.stream->feed(batches.at(0));
    std::vector<int64_t> uids = batches[0].all(batch::kUid);
    task.fed.insert(task.fed.end(), uids.begin(), uids.end());
    return;
  }
  Module& module = *task.hosted->module;
  Batch made;
  task.busy_since = base::now_seconds();
  begin_call();
  base::fault_point(task.info.node);
  if (task.trains) {
    module.train_step(task.function, batches, task.info);
    check_ranks_agree(task);
  } else if (!batches.at(0).empty() || task.hosted->context.line(task.function, kExperts) != nullptr) {
    made = with_uids(module.call(task.function, batches[0], task.info), batches[0], task.info);
  } else if (task.hosted->context.shares_weights(task.function)) {
    module.call(task.function, batches[0], task.info);  // ranks share the weights and call together
  }
  task.busy_seconds = base::now_seconds() - task.busy_since;
  task.peak_bytes = ledger_.call_bytes();
  note_operations(task);
  reply_rows(task, feed.feed, std::move(made));
}

void WorkerHost::on(const message::Close& close) {
  auto found = tasks_.find(close.task);
  if (found == tasks_.end()) return;  // it failed here before this message came
  if (found->second->stream)
    found->second->stream->close();  // finished when its last row has been taken
  else
    finish(close.task);
}

void WorkerHost::finish(graph::Task key) {
  tasks_.erase(key);
  reply(message::Finished{key});
}

void WorkerHost::on(const message::Pause& pause) {
  for (auto& [key, task] : tasks_)
    if (task->model == pause.model && task->stream) pause.paused ? task->stream->pause() : task->stream->resume();
}

void WorkerHost::reply_rows(Running& task, std::optional<int64_t> feed, Batch rows) {
  message::Rows said;
  said.task = task.key;
  said.feed = feed;
  said.rank = task.info.rank;
  said.rows = std::move(rows);
  said.metrics = task.hosted->module->metrics();
  said.begin_seconds = std::exchange(task.busy_since, 0);
  said.end_seconds = base::now_seconds();
  said.busy_seconds = std::exchange(task.busy_seconds, 0);
  said.peak_bytes = std::exchange(task.peak_bytes, 0);
  for (auto& [name, sums] : std::exchange(task.operations, {})) said.operations.push_back(std::move(sums));
  reply(std::move(said));
}

void WorkerHost::begin_call() {
  ledger_.begin_call();
  if (operation_times_) operation_times_->take();  // drops the times of loading and of moved weights
}

void WorkerHost::note_operations(Running& task) {
  if (!operation_times_) return;
  for (const tensor::OperationTime& time : operation_times_->take()) {
    tensor::OperationTime& sums = task.operations[time.name];
    sums.name = time.name;
    sums.calls += time.calls;
    sums.total_seconds += time.total_seconds;
    sums.self_seconds += time.self_seconds;
  }
}

bool WorkerHost::step(cluster::Outbox& out) {
  out_ = &out;
  bool worked = false;
  std::vector<graph::Task> keys;
  for (const auto& [key, task] : tasks_)
    if (task->stream) keys.push_back(key);
  for (const graph::Task& key : keys) worked = step_task(key) || worked;
  return worked;
}

bool WorkerHost::step_task(const graph::Task& key) {
  try {
    return step_stream(*tasks_.at(key));
  } catch (const std::exception& error) {
    fail(key, error);
    return false;
  }
}

void WorkerHost::settle() {
  const auto behind = [](const auto& item) {
    return item.second->lockstep != nullptr && item.second->lockstep->behind();
  };
  while (true) {
    const auto found = std::find_if(tasks_.begin(), tasks_.end(), behind);
    if (found == tasks_.end()) return;
    step_task(graph::Task(found->first));
  }
}

bool WorkerHost::step_stream(Running& task) {
  double began = base::now_seconds();
  begin_call();
  base::fault_point(task.info.node);
  bool worked = task.stream->step();
  if (worked) beat();
  if (task.lockstep != nullptr && task.lockstep->ended()) {
    drop(graph::Task(task.key));
    return worked;
  }
  Batch rows = task.stream->take();
  if (worked || !rows.empty()) {
    if (task.busy_since == 0) task.busy_since = began;
    task.busy_seconds += base::now_seconds() - began;
    task.peak_bytes = std::max(task.peak_bytes, ledger_.call_bytes());
  }
  note_operations(task);
  bool done = task.stream->done();
  if (!rows.empty() && !rows.has(batch::kUid.name))
    throw base::RunError(base::expectation("node " + task.info.node, "a uid column in finished rows", "none"));
  if (!rows.empty() || done) reply_rows(task, std::nullopt, std::move(rows));
  if (done) finish(task.key);
  return worked;
}

message::Resided WorkerHost::on(const message::Reside& reside) {
  message::Resided done{.begin_seconds = base::now_seconds()};
  hosted(reside.model).module->reside(reside.on_device);
  done.end_seconds = base::now_seconds();
  return done;
}

message::MemoryReport WorkerHost::on(const message::AskMemory&) { return {.memory = ledger_.report()}; }

message::Exported WorkerHost::on(const message::Export& asked) {
  Module& module = *hosted(asked.model).module;
  module.save_checkpoint(asked.directory, asked.iteration);
  const WeightsPort* weights = module.weights();
  return {.checksum = weights == nullptr ? std::nullopt : std::optional(weights->checksum())};
}

}  // namespace collimate::flow
