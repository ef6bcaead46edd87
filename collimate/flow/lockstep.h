#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collimate/comm/group.h"
#include "collimate/flow/module.h"

namespace collimate::flow {

// A stream of one rank that steps together with equal ones of other ranks: their steps meet in collectives, so that all
// must do the same steps over the same rows, although what is fed to them, or a close or a pause, reaches each rank at
// another time. What is asked of this one is kept until a border. There, before each step, the ranks agree on how many
// of these requests all of them have; each carries out so many, in order, and then all step. Where one has been told to
// end, all end. Used by one thread on each rank.
//
// Ranks that share the experts of a mixture step together too, each over rows of its own or none (`apart`): their
// forwards meet in every layer of experts, and the stream's step is the step of all of them (generate::Service). So it
// says that there is more to do where any rank has some, on all alike; and a stream that has given all its rows is done
// only when no rank has more.
//
// Consumes requests, in an order that is the same on all ranks; produces rows, the same on all. Waits for the other
// ranks at a border and in a step; they wake it, as do the abort of a group and its deadline. Nobody waits for ever:
//  - A rank comes to a border where a request is left to carry out, or where its last step said that there is more to
//    do. The latter is so on all ranks or on none, as their streams are equal after a border, or have agreed on it at
//    the end of the step; and a request comes to all, because the driver sends it to each before it waits for anything,
//    to ranks with rows of their own too, which may be none. So whoever waits here is not alone for long, and a rank
//    without anything to do stays away and reads its messages.
//  - In a step a rank makes the forwards that it has, and without tokens those that others still have, until none has
//    any. Each rank has a number of them that its own rows bound.
//  - The rank that is waited for may be in an earlier message. It is done with that by itself, or by collectives of an
//    earlier task. A worker has one task at a time (graph::Schedule), the workers get those that they share in one
//    order, and of the tasks that are not over the earliest waits for none of the others.
//  - A message that is no request of this stream may change what it computes (weights that arrive while it is paused),
//    so that a worker first carries out what was asked before (WorkerHost::settle). That waits at borders, to which the
//    others come for the same requests; by the first point none of them waits for what comes after that message.
//  - A worker whose task fails aborts its groups with the cause, one that ends aborts them too (LineGroups), and a
//    process that is gone is noticed by those that wait for it (comm/shm).
class Lockstep : public Stream {
 public:
  // `lines`: this rank's groups of all axes along which ranks step together; the ranks agree along one after the other,
  // so that all of the mesh over these axes do. They outlive this. `apart`: some of the ranks have rows of their own.
  struct Ranks {
    std::vector<comm::Group*> lines;
    bool apart = false;
    double deadline_seconds = 600.0;
  };
  Lockstep(std::unique_ptr<Stream> stream, Ranks ranks);

  void feed(const Batch& rows) override;
  void close() override;
  void pause() override;
  void resume() override;
  // A border and a step, or nothing where none is due. False when this rank has nothing to do before its next request.
  // Throws what the stream and the groups throw.
  bool step() override;
  Batch take() override { return stream_->take(); }
  bool done() const override { return stream_->done() && !(ranks_.apart && more_); }
  // Cancels in this rank's stream at once: where all have ended or failed.
  void cancel(std::span<const int64_t> uids) override { stream_->cancel(uids); }

  // All ranks are to end at the next border.
  void end() { ending_ = true; }
  bool ended() const { return ended_; }
  // Something that was asked is not yet done.
  bool behind() const { return !ended_ && (ending_ || !requests_.empty()); }

 private:
  struct Agreed {
    size_t requests = 0;  // that all ranks have
    bool ends = false;
  };
  Agreed agree() const;

  std::unique_ptr<Stream> stream_;
  const Ranks ranks_;
  std::deque<std::function<void(Stream&)>> requests_;
  bool more_ = false;  // to do, by the last step
  bool ending_ = false, ended_ = false;
};

}  // namespace collimate::flow
