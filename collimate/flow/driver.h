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

// A Received is a message of a worker.
struct Received {
  int worker = 0;
  message::ToDriver content;
};

// Returns the answer to a request. Throws RunError where the worker gave the answer to another kind of request.
template <class Asked>
typename Asked::Answer answer_to(Received received) {
  using Answer = typename Asked::Answer;
  if (auto* answer = std::get_if<Answer>(&received.content)) return std::move(*answer);
  throw base::RunError(base::expectation(fmt::format("answer of worker {} to '{}'", received.worker, Asked::kKind),
                                         Answer::kKind, "another kind"));
}

// A Driver is the driver's side of all workers of a run: it starts them, carries messages in order and keeps deadlines.
// Only the driver's thread uses it. Sending never blocks: messages that a full mailbox refuses wait here and are sent
// first when there is space.
class Driver {
 public:
  // Starts every worker and waits until all have set their models up. Throws the first cause when one cannot.
  Driver(const graph::Graph& graph, const graph::Placement& placement, const Registry& registry,
         const RunOptions& options);
  ~Driver();

  int workers() const { return static_cast<int>(slots_.size()); }
  // Sends one of message::ToWorker.
  template <class Said>
  void send(int worker, Said said) {
    post(worker, cluster::message_of(std::move(said)));
  }
  // Returns the next message of a worker's present life, or nullopt after `seconds` or when woken for nothing. Puts and
  // heartbeats are not returned. Throws RunError when nothing has come from any worker for the deadline; the error says
  // who waits for whom, from `waiting`.
  std::optional<Received> receive(double seconds, const std::function<std::string()>& waiting);
  // Sends a request to all of `to`, waits for all answers and returns them in that order. Other messages that arrive
  // meanwhile are received later. Throws when one of these workers dies meanwhile.
  template <class Asked>
  std::vector<typename Asked::Answer> request(const std::vector<int>& to, Asked asked) {
    asked.request = next_request_++;
    for (int worker : to) send(worker, asked);
    std::vector<typename Asked::Answer> answers;
    for (Received& answer : answers_to(asked.request, Asked::kKind, to))
      answers.push_back(answer_to<Asked>(std::move(answer)));
    return answers;
  }

  // Starts a worker's next life in place of a lost one; its Ready arrives as a message. Returns false when the
  // transport or the number of its lives forbids that, or when a group binds it to other workers, which would wait for
  // the lost one for ever.
  bool restart(int worker);

  SharedStore& store() { return store_; }
  const RunOptions& options() const { return options_; }
  // Ends all workers. The destructor calls it too.
  void stop();

 private:
  struct Slot {
    std::unique_ptr<cluster::WorkerLink> link;
    std::deque<cluster::Message> unsent;
    std::vector<StoreEntry> news;  // puts of other workers that it has not been told
    int lives = 1;
  };
  void start(int worker, uint64_t incarnation);
  void wait_ready();
  std::optional<Received> next(double seconds);
  // Does the same, and throws RunError when nothing has come for longer than the deadline.
  std::optional<Received> next_in_time(double seconds, const std::function<std::string()>& waiting);
  std::vector<Received> answers_to(int64_t request, const char* kind, const std::vector<int>& to);
  void post(int worker, cluster::Message message);
  void queue(Slot& slot, cluster::Message message);
  void flush();
  void note(int worker, const message::Puts& puts);
  [[noreturn]] void expired(const std::string& waiting) const;

  // The registry is kept alive because a thread that is abandoned while it sets up may go on making modules.
  const std::shared_ptr<const Registry> registry_;
  const RunOptions& options_;
  const std::unique_ptr<comm::GroupStore> group_store_;
  cluster::WorkerSpec spec_;   // rank and incarnation differ by worker
  const std::set<int> bound_;  // workers that share a group with others
  std::shared_ptr<cluster::Mailbox> inbox_;
  std::vector<Slot> slots_;
  std::deque<Received> deferred_;
  SharedStore store_;
  const bool reparse_;
  double last_progress_ = 0;  // base::now_seconds()
  int64_t next_request_ = 1;
};

// Throws the error that the message of a failed task or worker tells of, as the class of the original.
[[noreturn]] void throw_failure(const std::string& cause, int exit_code);

}  // namespace collimate::flow
