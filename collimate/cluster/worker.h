#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/base/fields.h"
#include "collimate/cluster/mailbox.h"
#include "collimate/cluster/message.h"

namespace collimate::cluster {

// A WorkerSpec is all that a worker is built from. Functions are names in its program's registry. Therefore a thread, a
// process and an actor of another engine can be the same worker.
struct WorkerSpec {
  static constexpr const char* kKind = "spec";
  std::string config;     // resolved config, JSON text
  std::string graph;      // Graph's text form
  std::string placement;  // Placement's text form
  std::string options;    // run options the worker needs (seed, deadlines, threads), JSON text
  int rank = 0;           // index of the device
  uint64_t incarnation = 0;

  COLLIMATE_FIELDS(config, graph, placement, options, rank, incarnation)
};

// A worker says this when its handler is built.
struct Ready {
  static constexpr const char* kKind = "ready";
  static void fields(auto&, auto&&) {}
};

// Died is the last message of a worker that ended by itself, or of its link when its process is gone.
struct Died {
  static constexpr const char* kKind = "died";
  std::string cause;
  int exit_code = 1;  // of the error that ended it (base/error.h)
  bool lost = false;  // its process is gone, and another may take its place

  COLLIMATE_FIELDS(cause, exit_code, lost)
};

// A handler puts its replies into an Outbox, which never blocks and keeps their order.
class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual void send(Message message) = 0;
};

// A Handler is the part of a worker that knows modules. Only the worker's thread uses it.
class Handler {
 public:
  virtual ~Handler() = default;
  // Handles one message to its end. An exception that leaves it stops the worker, which reports it as its own failure.
  virtual void handle(Message message, Outbox& out) = 0;
  // Takes one bounded step of the open streams. Returns false when there is nothing to do before the next message.
  virtual bool step(Outbox& out) = 0;
};
using HandlerFactory = std::function<std::unique_ptr<Handler>(const WorkerSpec&)>;

// A Worker is the loop of one device. It consumes `inbox` in order and sends into `outbox`. It waits for a message only
// when no stream has work, and is woken by a push, by `poke` and by space in the outbox. Replies that find the outbox
// full wait in the worker's own queue; no stream steps while that is not empty, so memory is bounded by what was
// dispatched. It sends Ready when the handler is built. It ends when the inbox is closed and empty, or when the handler
// throws (Died says why).
class Worker : private Outbox {
 public:
  Worker(WorkerSpec spec, const HandlerFactory& make, Mailbox& inbox, Mailbox& outbox);
  ~Worker() override;
  // Blocks until the worker ends. Does not throw.
  void run();

 private:
  void send(Message message) override;
  void loop();
  bool flush();  // returns true when nothing is left to send

  WorkerSpec spec_;
  const HandlerFactory& make_;
  Mailbox& inbox_;
  Mailbox& outbox_;
  std::unique_ptr<Handler> handler_;
  std::deque<Message> unsent_;
  bool stopped_ = false;
};

// A WorkerLink is the driver's end of one worker, whatever runs it.
class WorkerLink {
 public:
  virtual ~WorkerLink() = default;
  virtual int rank() const = 0;
  virtual uint64_t incarnation() const = 0;
  // The driver sends into this mailbox; the worker's replies arrive in the driver's mailbox.
  virtual Mailbox& inbox() = 0;
  // Ends the worker: closes the inbox and waits at most `seconds`, then kills a process or abandons a thread. It may be
  // called twice.
  virtual void stop(double seconds) = 0;
  // Returns "thread of this process" or "process 4711", for messages.
  virtual std::string describe() const = 0;
};

}  // namespace collimate::cluster
