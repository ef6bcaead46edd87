#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/cluster/worker.h"
#include "collimate/comm/group.h"
#include "collimate/flow/executor.h"
#include "collimate/flow/messages.h"
#include "collimate/flow/shared_store.h"

namespace collimate::flow {

// A message of a worker.
struct Received {
  int worker = 0;
  message::ToDriver content;
};

// The answer to a request. RunError where the worker gave another one's.
template <class Asked>
typename Asked::Answer answer_to(Received received) {
  using Answer = typename Asked::Answer;
  if (auto* answer = std::get_if<Answer>(&received.content)) return std::move(*answer);
  throw base::RunError(base::expectation(fmt::format("answer of worker {} to '{}'", received.worker, Asked::kKind),
                                         Answer::kKind, "another kind"));
}

// The driver's side of all workers of a run: starts them, carries messages in order, keeps deadlines. Used by the
// driver's thread alone. Sending never blocks: what a full mailbox refuses waits here and goes first when there is
// space.
class Driver {
 public:
  // Starts every worker and waits until all have set their models up. Throws the first cause when one cannot.
  Driver(const graph::Graph& graph, const graph::Placement& placement, const Registry& registry,
         const RunOptions& options);
  ~Driver();

  int workers() const { return static_cast<int>(slots_.size()); }
  // One of message::ToWorker.
  template <class Said>
  void send(int worker, Said said) {
    post(worker, cluster::message_of(std::move(said)));
  }
  // The next message of a worker's present life; nullopt after `seconds` or when woken for nothing. RunError when
  // nothing has come from any worker for the deadline; the message has who waits for whom, from `waiting`. Puts and
  // heartbeats are not among them.
  std::optional<Received> receive(double seconds, const std::function<std::string()>& waiting);
  // Sends a request to all of `to` and waits for all answers, in that order; what else arrives meanwhile is received
  // later. A worker that dies meanwhile is an error.
  template <class Asked>
  std::vector<typename Asked::Answer> request(const std::vector<int>& to, Asked asked) {
    asked.request = next_request_++;
    for (int worker : to) send(worker, asked);
    std::vector<typename Asked::Answer> answers;
    for (Received& answer : answers_to(asked.request, Asked::kKind, to))
      answers.push_back(answer_to<Asked>(std::move(answer)));
    return answers;
  }

  // A worker's next life in place of a lost one, if its transport and the number of its lives allow and no group binds
  // it to others, which would wait for the lost one for ever; its Ready arrives as a message. False when it cannot be.
  bool restart(int worker);

  SharedStore& store() { return store_; }
  const RunOptions& options() const { return options_; }
  // Ends all workers. Called by the destructor too.
  void stop();

 private:
  struct Slot {
    std::unique_ptr<cluster::WorkerLink> link;
    std::deque<cluster::Message> unsent;
    std::vector<StoreEntry> news;  // puts of others that it has not been told
    int lives = 1;
  };
  void start(int worker, uint64_t incarnation);
  void wait_ready();
  std::optional<Received> next(double seconds);
  // Does the same, with a RunError when nothing has come for longer than the deadline.
  std::optional<Received> next_in_time(double seconds, const std::function<std::string()>& waiting);
  std::vector<Received> answers_to(int64_t request, const char* kind, const std::vector<int>& to);
  void post(int worker, cluster::Message message);
  void queue(Slot& slot, cluster::Message message);
  void flush();
  void note(int worker, const message::Puts& puts);
  [[noreturn]] void expired(const std::string& waiting) const;

  // The driver keeps the registry alive, as a thread that is abandoned while it sets up goes on making modules.
  const std::shared_ptr<const Registry> registry_;
  const RunOptions& options_;
  const std::unique_ptr<comm::GroupStore> group_store_;
  cluster::WorkerSpec spec_;   // rank and incarnation differ
  const std::set<int> bound_;  // workers that are in a group with others
  std::shared_ptr<cluster::Mailbox> inbox_;
  std::vector<Slot> slots_;
  std::deque<Received> deferred_;
  SharedStore store_;
  const bool reparse_;
  double last_progress_ = 0;  // base::now_seconds()
  int64_t next_request_ = 1;
};

// The error that a failed task or worker's message tells of, with the class of the original.
[[noreturn]] void throw_failure(const std::string& cause, int exit_code);

}  // namespace collimate::flow
