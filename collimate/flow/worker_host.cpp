#include "collimate/flow/worker_host.h"

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/base/log.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/flow/payload.h"
#include "collimate/flow/received_rows.h"

namespace collimate::flow {
namespace {

// Adds the uid column of the input where the result has the same rows and none of its own.
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

}  // namespace

WorkerHost::Hosted& WorkerHost::hosted(const std::string& model) {
  auto found = models_.find(model);
  COLLIMATE_CHECK(found != models_.end(), "worker {} has no model {}", spec_.rank, model);
  return *found->second;
}

void WorkerHost::reply(nlohmann::json header, cluster::Outbox& out) {
  std::vector<StoreEntry> fresh = store_.drain();
  if (!fresh.empty()) header["store"] = fresh;
  cluster::Message message;
  message.header = std::move(header);
  out.send(std::move(message));
}

void WorkerHost::handle(cluster::Message message, cluster::Outbox& out) {
  base::fault_count("worker.message", 1);
  out_ = &out;
  if (message.header.contains("store")) store_.apply(message.header["store"]);
  if (!message.header.contains("task")) {
    dispatch(message.type(), message, out);
    return;
  }
  const TaskKey key = message.header["task"];
  try {
    dispatch(message.type(), message, out);
  } catch (const std::exception& error) {
    fail(key, error, out);
  }
}

void WorkerHost::fail(const TaskKey& key, const std::exception& error, cluster::Outbox& out) {
  auto found = tasks_.find(key);
  nlohmann::json header = {{"type", "failed"},
                           {"task", key},
                           {"cause", error.what()},
                           {"exit_code", exit_code_of(error)},
                           {"retryable", dynamic_cast<const RetryableError*>(&error) != nullptr}};
  if (found != tasks_.end()) {
    header["model"] = found->second->model;
    found->second->hosted->group->abort(error.what());
    drop(key);
  }
  reply(std::move(header), out);
}

// Ends a task that is cancelled or has failed: what its stream still works on is let go.
void WorkerHost::drop(const TaskKey& key) {
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

// A sign of life from inside long work, for the driver and for the ranks that wait for this one. It brings no news of
// the store: when those become known must not depend on the clock.
void WorkerHost::beat() {
  for (const auto& [model, hosted] : models_) hosted->group->beat();
  const double now = base::now_seconds();
  if (out_ == nullptr || now - last_beat_ < beat_seconds_) return;
  last_beat_ = now;
  cluster::Message message;
  message.header = {{"type", "heartbeat"}};
  out_->send(std::move(message));
}

// Data-parallel ranks hold whole copies: after training they must be equal, or gradients were not reduced.
void WorkerHost::check_ranks_agree(Running& task) {
  Context& context = task.hosted->context;
  WeightsPort* weights = task.hosted->module->weights();
  if (weights == nullptr || context.size == 1 || context.mesh.size("dp") != context.size) return;
  std::vector<uint64_t> mine = {weights->checksum()}, all(static_cast<size_t>(context.size));
  context.group->all_gather(comm::bytes_of(mine), comm::writable_bytes_of(all)).wait(context.deadline_seconds);
  for (uint64_t other : all)
    if (other != mine[0])
      throw base::GuardError(base::expectation("model " + task.model, "equal weights on all dp ranks after training",
                                               fmt::format("checksums {:016x}", fmt::join(all, ", ")),
                                               "reducing gradients over the context's group"));
}

void WorkerHost::dispatch(const std::string& type, const cluster::Message& message, cluster::Outbox& out) {
  const nlohmann::json& header = message.header;
  if (type == "start") return start(message);
  if (type == "cancel") return drop(header.at("task").get<TaskKey>());
  if (type == "feed" || type == "close") {
    auto found = tasks_.find(header.at("task").get<TaskKey>());
    if (found == tasks_.end()) return;  // it failed here before this message came
    return type == "feed" ? feed(message, *found->second, out) : close(*found->second, out);
  }
  if (type == "pause" || type == "resume") {
    for (auto& [key, task] : tasks_)
      if (task->model == header.at("model") && task->stream)
        type == "pause" ? task->stream->pause() : task->stream->resume();
    return;
  }
  if (type == "hook") return hooks(header.at("before").get<bool>(), header.at("iteration").get<int64_t>());
  if (type == "memory") {
  } else if (type == "reside") {
    hosted(header.at("model")).module->reside(header.at("on_device").get<bool>());
  } else if (type == "save") {
    save(header.at("directory"));
  } else if (type == "load") {
    load(header.at("directory"));
  } else if (type == "export") {
    hosted(header.at("model")).module->save_checkpoint(header.at("directory"), header.at("iteration").get<int64_t>());
  } else {
    return weights(message, out);
  }
  nlohmann::json answer = {{"type", "done"}, {"request", header.value("request", int64_t{0})}};
  if (type == "memory") answer["memory"] = ledger_.report();
  if (type == "export")
    if (const WeightsPort* port = hosted(header.at("model")).module->weights()) answer["checksum"] = port->checksum();
  reply(std::move(answer), out);
}

void WorkerHost::start(const cluster::Message& message) {
  const nlohmann::json& header = message.header;
  auto task = std::make_unique<Running>();
  task->key = header.at("task").get<TaskKey>();
  task->model = header.at("model");
  task->function = header.at("function");
  task->hosted = &hosted(task->model);
  task->trains = header.at("trains").get<bool>();
  task->info.iteration = task->key.task.iteration;
  task->info.node = header.at("node");
  task->info.replica = task->key.task.replica;
  task->info.part = task->key.task.part;
  task->info.rank = header.at("rank").get<int>();
  task->info.parameters = header.at("parameters");
  Running& running = *task;
  tasks_[running.key] = std::move(task);
  if (header.at("streams").get<bool>()) running.stream = running.hosted->module->open(running.function, running.info);
}

void WorkerHost::feed(const cluster::Message& message, Running& task, cluster::Outbox& out) {
  const std::vector<Batch> batches = batches_of(message);
  const ReceivedRows received(message, batches, spec_.rank);
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
  } else if (!batches.at(0).empty()) {
    made = with_uids(module.call(task.function, batches[0], task.info), batches[0], task.info);
  }
  task.busy_seconds = base::now_seconds() - task.busy_since;
  task.peak_bytes = ledger_.call_bytes();
  note_operations(task);
  reply_rows(task, message.header.at("feed"), std::move(made), out);
}

void WorkerHost::close(Running& task, cluster::Outbox& out) {
  if (task.stream) {
    task.stream->close();
    return;  // finished when its last row has been taken
  }
  TaskKey key = task.key;
  tasks_.erase(key);
  reply({{"type", "finished"}, {"task", key}}, out);
}

void WorkerHost::reply_rows(Running& task, const nlohmann::json& feed, Batch rows, cluster::Outbox& out) {
  cluster::Message message;
  message.header = {{"type", "rows"},
                    {"task", task.key},
                    {"feed", feed},
                    {"rank", task.info.rank},
                    {"metrics", task.hosted->module->metrics()},
                    {"span", {task.busy_since, base::now_seconds(), task.busy_seconds}},
                    {"peak_bytes", task.peak_bytes}};
  if (operation_times_) message.header["operations"] = std::exchange(task.operations, {});
  task.busy_since = task.busy_seconds = 0;
  task.peak_bytes = 0;
  std::vector<StoreEntry> fresh = store_.drain();
  if (!fresh.empty()) message.header["store"] = fresh;
  message.payload = std::make_shared<BatchPayload>(std::vector<Batch>{std::move(rows)});
  out.send(std::move(message));
}

void WorkerHost::begin_call() {
  ledger_.begin_call();
  if (operation_times_) operation_times_->take();  // of loading, of moved weights
}

void WorkerHost::note_operations(Running& task) {
  if (!operation_times_) return;
  for (const tensor::OperationTime& time : operation_times_->take()) {
    auto& [calls, total, self] = task.operations[time.name];
    calls += static_cast<double>(time.calls);
    total += time.total_seconds;
    self += time.self_seconds;
  }
}

bool WorkerHost::step(cluster::Outbox& out) {
  out_ = &out;
  bool worked = false;
  std::vector<TaskKey> keys;
  for (const auto& [key, task] : tasks_)
    if (task->stream) keys.push_back(key);
  for (const TaskKey& key : keys) {
    try {
      worked = step_stream(*tasks_.at(key), out) || worked;
    } catch (const std::exception& error) {
      fail(key, error, out);
    }
  }
  return worked;
}

bool WorkerHost::step_stream(Running& task, cluster::Outbox& out) {
  double began = base::now_seconds();
  begin_call();
  base::fault_point(task.info.node);
  bool worked = task.stream->step();
  if (worked) beat();
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
  if (!rows.empty() || done) reply_rows(task, nullptr, std::move(rows), out);
  if (done) {
    TaskKey key = task.key;
    tasks_.erase(key);
    reply({{"type", "finished"}, {"task", key}}, out);
  }
  return worked;
}

void WorkerHost::weights(const cluster::Message& message, cluster::Outbox& out) {
  const nlohmann::json& header = message.header;
  auto port = [&](const char* end) -> WeightsPort& {
    std::string model = header.at(end);
    WeightsPort* weights = hosted(model).module->weights();
    if (weights == nullptr) throw base::RunError(base::expectation("link", model + " to have weights", "none"));
    return *weights;
  };
  std::string link = fmt::format("{} -> {}", header.value("source", ""), header.value("destination", ""));
  nlohmann::json answer = {{"type", "done"}, {"request", header.at("request")}};
  if (message.type() == "weights_here") {
    answer["bytes"] = transfer_here(link, port("source"), port("destination"));
  } else if (message.type() == "weights_in") {
    answer["bytes"] = import_weights(link, transfer_of(message), port("destination"));
  } else if (message.type() == "weights_out") {
    cluster::Message full;
    full.header = std::move(answer);
    full.payload = std::make_shared<WeightPayload>(export_weights(port("source")));
    out.send(std::move(full));
    return;
  } else {
    throw base::RunError(base::expectation("worker", "a known message", message.type()));
  }
  reply(std::move(answer), out);
}

void WorkerHost::hooks(bool before, int64_t iteration) {
  for (auto& [model, hosted] : models_)
    before ? hosted->module->before_iteration(iteration) : hosted->module->after_iteration(iteration);
  if (!before) store_.trim(iteration);
}

}  // namespace collimate::flow
