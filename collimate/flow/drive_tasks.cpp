#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/flow/drive.h"
#include "collimate/flow/payload.h"
#include "collimate/flow/received_rows.h"
#include "collimate/flow/updates.h"

namespace collimate::flow {
namespace {

bool trains(const graph::FunctionSpec& spec) { return spec.kind == graph::Kind::kTrain; }

// Says whether a function gets all its rows in one message, once nothing more comes.
bool wants_all(const graph::FunctionSpec& spec) {
  return !spec.streams && (trains(spec) || spec.granularity == graph::Granularity::kIteration);
}

bool wants_groups(const graph::FunctionSpec& spec) { return spec.granularity == graph::Granularity::kGroup; }

}  // namespace

std::string Drive::journal_name(const TaskState& state) {
  if (state.task.graph == 0) return state.node->id;
  const std::string& name = state.flow->name;
  return fmt::format("eval/{}/{}{}", state.task.iteration, name.empty() ? "" : name + "/", state.node->id);
}

template <class Said>
void Drive::send_to_ranks(const TaskState& state, const Said& said) {
  for (int worker : state.actor.workers()) driver_.send(worker, said);
}

void Drive::start(const graph::Action& action) {
  const Flow& flow = flow_of(action.task);
  const graph::Node& node = flow.graph.node(action.task.node);
  const graph::FunctionSpec& spec = flow.graph.spec(action.task.node);
  DistActor actor(spec, parts_.placement.layout(node.model, node.function), action.workers);
  TaskState& state =
      tasks_.insert_or_assign(action.task, TaskState{action.task, &flow, &node, &spec, std::move(actor), {}, {}, {}})
          .first->second;
  if (!spec.deterministic) state.next_feed = journal_.next_sequence(counted(action.task), journal_name(state));
  message::Start start{.task = action.task,
                       .iteration = counted(action.task),
                       .node = node.id,
                       .model = node.model,
                       .function = node.function,
                       .parameters = node.parameters,
                       .trains = trains(spec),
                       .streams = spec.streams};
  for (int worker : state.actor.workers()) {
    driver_.send(worker, start);
    ++start.rank;
  }
}

void Drive::fetch_inputs(const graph::Task& task, int64_t end) {
  const Flow& flow = flow_of(task);
  Iteration& content = iteration_of(task);
  const int64_t rows = task.graph == 0 ? parts_.schedule.rows_in(task.iteration) : flow.rows;
  while (content.fetched < end) {
    int64_t first = content.fetched;
    int64_t group = flow.group_size;
    int64_t count = first == 0 ? rows : (end - first + group - 1) / group * group;
    Batch given = flow.next_rows(task.iteration, first, count);
    if (given.rows() != count)
      throw base::RunError(base::expectation(fmt::format("rows of iteration {}", graph::step_of(task.iteration)),
                                             fmt::format("{} rows", count), std::to_string(given.rows())));
    std::vector<std::string> names = {batch::kUid.name};
    given.require(names, "the executor");
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < count; ++i) numbers.push_back(first + i);
    content.rows.put(RowTable::kInputs, numbers, given);
    content.fetched += count;
  }
}

Batch Drive::rows_for(const TaskState& state, const std::vector<int64_t>& numbers) {
  fetch_inputs(state.task, *std::max_element(numbers.begin(), numbers.end()) + 1);
  return iteration_of(state.task).rows.join(base::at(state.flow->sources, state.task.node), numbers);
}

void Drive::feed(const graph::Task& task, int64_t first, int64_t count) {
  auto found = tasks_.find(task);
  if (found == tasks_.end()) return;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(first + i);
  TaskState& state = found->second;
  if (wants_all(*state.spec) || wants_groups(*state.spec))
    state.held.insert(state.held.end(), numbers.begin(), numbers.end());
  else
    dispatch(state, std::move(numbers));
}

void Drive::end_feeds(const graph::Task& task) {
  auto found = tasks_.find(task);
  if (found == tasks_.end() || wants_all(*found->second.spec) || found->second.held.empty()) return;
  std::vector<int64_t> numbers = std::exchange(found->second.held, {});
  std::sort(numbers.begin(), numbers.end());
  dispatch(found->second, std::move(numbers));
}

void Drive::close(const graph::Task& task) {
  auto found = tasks_.find(task);
  if (found == tasks_.end()) return;
  TaskState& state = found->second;
  std::sort(state.held.begin(), state.held.end());
  if (trains(*state.spec) && !state.held.empty())
    dispatch_updates(state);
  else if (!state.held.empty())
    dispatch(state, std::exchange(state.held, {}));
  send_to_ranks(state, message::Close{task});
}

void Drive::cancel(const graph::Task& task) {
  auto found = tasks_.find(task);
  if (found == tasks_.end()) return;
  send_to_ranks(found->second, message::Cancel{task});
  tasks_.erase(found);
}

void Drive::send_feed(TaskState& state, std::vector<int64_t> numbers, std::vector<std::vector<Batch>> batches) {
  const int64_t feed = state.next_feed++;
  if (!state.spec->streams)
    state.feeds[feed] = {std::move(numbers), std::vector<Batch>(batches.size()), batches.size()};
  for (size_t rank = 0; rank < batches.size(); ++rank)
    driver_.send(state.actor.workers()[rank], message::Feed{state.task, feed, std::move(batches[rank])});
}

namespace {

// Returns the columns that a function makes, of rows that it returned. All other columns belong to the rows themselves
// and may have changed since.
Batch made_columns(const graph::FunctionSpec& function, const Batch& rows) {
  std::vector<std::string> made;
  for (const std::string& name : rows.names())
    if (name == batch::kUid.name || std::ranges::count(function.makes, name, &graph::Column::name) > 0)
      made.push_back(name);
  return rows.select_columns(made);
}

}  // namespace

std::vector<int64_t> Drive::serve_from_journal(TaskState& state, const std::vector<int64_t>& numbers) {
  const std::vector<ResultJournal::Key> keys = journal_keys(state, rows_for(state, numbers));
  std::vector<int64_t> unknown, known, dropped;
  std::vector<Batch> served;
  for (size_t i = 0; i < numbers.size(); ++i) {
    auto entry = journal_.find(keys[i]);
    if (entry) count_journaled_call(state, keys[i]);
    if (!entry) {
      unknown.push_back(numbers[i]);
    } else if (entry->dropped) {
      dropped.push_back(numbers[i]);
    } else {
      known.push_back(numbers[i]);
      served.push_back(made_columns(*state.spec, entry->row));
    }
  }
  if (!served.empty()) iteration_of(state.task).rows.put(state.task.node, known, Batch::concatenate(served));
  push_runs(state.task, std::move(known), false);
  push_runs(state.task, std::move(dropped), true);
  return unknown;
}

std::vector<ResultJournal::Key> Drive::journal_keys(const TaskState& state, const Batch& rows) const {
  std::vector<std::string> read;
  for (const graph::Column& column : state.spec->needs)
    if (rows.has(column.name)) read.push_back(column.name);
  const Batch seen = rows.select_columns(read);
  std::vector<ResultJournal::Key> keys;
  for (int64_t i = 0; i < rows.rows(); ++i)
    keys.push_back({counted(state.task), journal_name(state), static_cast<uint64_t>(rows.get(batch::kUid, i)),
                    base::stable_hash(pack(seen.slice(i, i + 1)))});
  return keys;
}

// Counts the measurements of a call once, whichever of its rows is served first.
void Drive::count_journaled_call(const TaskState& state, const ResultJournal::Key& key) {
  const ResultJournal::Call* call = journal_.call_of(key);
  if (call == nullptr) return;
  Iteration& iteration = iteration_of(state.task);
  for (const auto& [rank, measured] : call->metrics)
    iteration.metrics.try_emplace(MetricKey{state.task.node, call->replica, call->part, call->sequence, rank},
                                  measured);
  iteration.sequence = std::max(iteration.sequence, call->sequence + 1);
}

void Drive::dispatch(TaskState& state, std::vector<int64_t> numbers) {
  if (!state.spec->deterministic) numbers = serve_from_journal(state, numbers);
  if (numbers.empty()) return;
  Batch rows = rows_for(state, numbers);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int64_t uid = rows.get(batch::kUid, static_cast<int64_t>(i));
    state.numbers[uid] = numbers[i];
    state.answered.erase(uid);
  }
  std::vector<std::vector<Batch>> batches;
  for (Batch& part : state.actor.split(rows, numbers, state.flow->group_size)) batches.push_back({std::move(part)});
  send_feed(state, std::move(numbers), std::move(batches));
}

void Drive::dispatch_updates(TaskState& state) {
  std::vector<int64_t> numbers = std::exchange(state.held, {});
  std::vector<Batch> updates = cut_updates(rows_for(state, numbers), state.node->parameters);
  std::vector<std::vector<Batch>> batches(state.actor.workers().size());
  for (const Batch& update : updates) {
    std::vector<Batch> parts = state.actor.split_update(update, pair_size(update));
    for (size_t rank = 0; rank < parts.size(); ++rank) batches[rank].push_back(std::move(parts[rank]));
  }
  send_feed(state, std::move(numbers), std::move(batches));
}

int64_t Drive::note_call(const TaskState& state, const message::Rows& rows, int worker) {
  Iteration& iteration = iteration_of(state.task);
  const std::vector<int>& reporting = state.actor.reporting();
  const bool counts = std::find(reporting.begin(), reporting.end(), rows.rank) != reporting.end();
  const int64_t sequence = rows.feed ? *rows.feed : iteration.sequence++;
  if (counts && !rows.metrics.empty())
    iteration.metrics[{state.task.node, state.task.replica, state.task.part, sequence, rows.rank}] = rows.metrics;
  if (rows.begin_seconds == 0.0) return sequence;
  const std::pair<int, int> place{state.task.node, worker};
  iteration.seconds[place] += rows.busy_seconds;
  iteration.peak_bytes[place] = std::max(iteration.peak_bytes[place], rows.peak_bytes);
  report_call(state, rows, worker);
  base::SpanRecorder* spans = driver_.options().spans;
  if (spans == nullptr) return sequence;
  auto at = [&](double seconds) {
    return spans->now_ns() - static_cast<int64_t>((base::now_seconds() - seconds) * 1e9);
  };
  spans->record(state.node->id, worker, graph::step_of(counted(state.task)), at(rows.begin_seconds),
                at(rows.end_seconds));
  return sequence;
}

void Drive::report_call(const TaskState& state, const message::Rows& rows, int worker) const {
  if (state.task.graph != 0 || !driver_.options().on_call) return;
  driver_.options().on_call({.node = state.node->id,
                             .worker = worker,
                             .iteration = state.task.iteration,
                             .begin_seconds = rows.begin_seconds,
                             .end_seconds = rows.end_seconds,
                             .busy_seconds = rows.busy_seconds,
                             .operations = rows.operations});
}

void Drive::on(message::Rows& rows, int worker) {
  auto found = tasks_.find(rows.task);
  if (found == tasks_.end()) return;
  TaskState& state = found->second;
  const int64_t sequence = note_call(state, rows, worker);
  take_over(rows.rows, kDriverAccount);
  if (!rows.feed) {
    const std::vector<int>& collecting = state.actor.collecting();
    bool counts = std::find(collecting.begin(), collecting.end(), rows.rank) != collecting.end();
    if (counts && !rows.rows.empty()) outputs(state, rows.rows, {}, sequence);
    return;
  }
  OpenFeed& feed = state.feeds.at(*rows.feed);
  base::at(feed.parts, rows.rank) = std::move(rows.rows);
  if (--feed.missing > 0) return;
  OpenFeed complete = std::move(feed);
  state.feeds.erase(*rows.feed);
  feed_done(state, complete, sequence);
}

void Drive::feed_done(TaskState& state, const OpenFeed& feed, int64_t sequence) {
  if (trains(*state.spec) || state.actor.collecting().empty()) return;  // Finished says when the rows are done
  std::vector<Batch> parts;
  bool said = false;
  for (int rank : state.actor.collecting()) {
    parts.push_back(base::at(feed.parts, rank));
    said = said || !parts.back().names().empty();
  }
  if (said)
    outputs(state, state.actor.collect(parts), feed.numbers, sequence);
  else
    push_runs(state.task, feed.numbers, false);
}

// Handles rows that came out of a task. Rows of `fed` that are not among them were dropped.
void Drive::outputs(TaskState& state, const Batch& rows, const std::vector<int64_t>& fed, int64_t sequence) {
  std::vector<int64_t> uids = rows.empty() ? std::vector<int64_t>() : rows.all(batch::kUid);
  std::vector<int64_t> numbers;
  for (int64_t uid : uids) {
    auto known = state.numbers.find(uid);
    if (known == state.numbers.end())
      throw base::RunError(
          base::expectation("node " + state.node->id, "rows that it was fed", fmt::format("a row with uid {}", uid)));
    if (!state.answered.insert(uid).second)
      throw base::RunError(base::expectation("node " + state.node->id, "each row that it was fed at most once",
                                             fmt::format("the row with uid {} again", uid)));
    numbers.push_back(known->second);
  }
  std::vector<int64_t> given = numbers;
  std::sort(given.begin(), given.end());
  std::vector<int64_t> dropped;
  std::set_difference(fed.begin(), fed.end(), given.begin(), given.end(), std::back_inserter(dropped));
  const bool journaled = !state.spec->deterministic;
  if (journaled) journal(state, rows, uids, dropped, sequence);
  if (!numbers.empty())
    iteration_of(state.task).rows.put(state.task.node, numbers, journaled ? made_columns(*state.spec, rows) : rows);
  push_runs(state.task, std::move(given), false);
  push_runs(state.task, std::move(dropped), true);
}

ResultJournal::Call Drive::call_made(const TaskState& state, int64_t sequence) {
  const graph::Task& task = state.task;
  ResultJournal::Call call{task.replica, task.part, sequence, {}};
  for (const auto& [key, measured] : iteration_of(task).metrics)
    if (key == MetricKey{task.node, task.replica, task.part, sequence, key.rank}) call.metrics[key.rank] = measured;
  return call;
}

void Drive::journal(TaskState& state, const Batch& rows, const std::vector<int64_t>& uids,
                    const std::vector<int64_t>& dropped, int64_t sequence) {
  std::vector<int64_t> all;
  for (const int64_t uid : uids) all.push_back(state.numbers.at(uid));
  all.insert(all.end(), dropped.begin(), dropped.end());
  if (all.empty()) return;
  const std::vector<ResultJournal::Key> keys = journal_keys(state, rows_for(state, all));
  journal_.add_call(keys, call_made(state, sequence));
  const Batch made = made_columns(*state.spec, rows);
  for (size_t i = 0; i < uids.size(); ++i)
    journal_.add(keys[i], made.slice(static_cast<int64_t>(i), static_cast<int64_t>(i) + 1));
  for (size_t i = uids.size(); i < all.size(); ++i) journal_.add_dropped(keys[i]);
  journal_.commit();
}

void Drive::push_runs(const graph::Task& task, std::vector<int64_t> numbers, bool dropped) {
  std::sort(numbers.begin(), numbers.end());
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    auto count = static_cast<int64_t>(end - i);
    events_.push_back(dropped ? graph::Event::dropped(task, numbers[i], count)
                              : graph::Event::rows(task, numbers[i], count));
    i = end;
  }
}

void Drive::on(const message::Finished& finished, int) {
  const graph::Task task = finished.task;
  auto found = tasks_.find(task);
  if (found == tasks_.end() || ++found->second.finished < found->second.actor.workers().size()) return;
  tasks_.erase(found);
  events_.push_back(graph::Event::finished(task));
}

}  // namespace collimate::flow
