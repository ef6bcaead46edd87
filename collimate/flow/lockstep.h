#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collimate/comm/group.h"
#include "collimate/flow/module.h"

namespace collimate::flow {

// A Lockstep is a stream of one rank that steps together with equal streams of other ranks. Their steps meet in
// collectives, so all must take the same steps over the same rows, although a feed, a close or a pause reaches each
// rank at a different time. Requests to this stream are kept until a border. At a border, before each step, the ranks
// agree on how many requests all of them have; each carries out that many, in order, and then all step. When one rank
// has been told to end, all end. One thread uses it on each rank.
//
// Ranks that share the experts of a mixture also step together, each over rows of its own or none (`apart`): their
// forwards meet in every layer of experts, and one step of the stream is a step of all of them (generate::Service).
// Such a stream says on all ranks alike that there is more to do as long as any rank has some, and a stream that has
// given all its rows is done only when no rank has more.
//
// A Lockstep consumes requests, in an order that is the same on all ranks, and produces rows that are the same on all.
// It waits for the other ranks at a border and in a step; they wake it, as do the abort of a group and its deadline.
// Nobody waits for ever:
//  - A rank comes to a border when it has a request to carry out, or when its last step said that there is more to do.
//    The latter holds on all ranks or on none, because their streams are equal after a border or have agreed on it at
//    the end of the step. A request comes to all ranks, because the driver sends it to each before it waits for
//    anything; ranks that step `apart` get every feed too, even one without rows for them. So a rank that waits here
//    is not alone for long, and a rank without anything to do stays away and reads its messages.
//  - In a step a rank makes its own forwards, and forwards without tokens as long as other ranks still have some. A
//    rank's own rows bound the number of its forwards.
//  - A rank that is waited for may still handle an earlier message. It finishes that by itself, or by collectives of an
//    earlier task. A worker has one task at a time (graph::Schedule), workers get the tasks that they share in one
//    order, and the earliest unfinished task waits for none of the others.
//  - A message that is no request of this stream may change what it computes (weights that arrive while it is paused),
//    so a worker first carries out what was asked before (WorkerHost::settle). This waits at borders, to which the
//    other ranks come for the same requests; by the first point none of them waits for what comes after that message.
//  - A worker whose task fails aborts its groups with the cause, a worker that ends aborts them too (LineGroups), and
//    ranks that wait for a process notice when it is gone (comm/shm).
class Lockstep : public Stream {
 public:
  // `lines` are this rank's groups of all axes along which ranks step together, which must outlive this. The ranks
  // agree along one line after the other, so that all ranks of the mesh over these axes agree. `apart` says that some
  // of the ranks have rows of their own.
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
  // Carries out a border and a step, or nothing where none is due. Returns false when this rank has nothing to do
  // before its next request. Throws what the stream and the groups throw.
  bool step() override;
  Batch take() override { return stream_->take(); }
  bool done() const override { return stream_->done() && !(ranks_.apart && more_); }
  // Cancels in this rank's stream at once; this is for when all ranks have ended or failed.
  void cancel(std::span<const int64_t> uids) override { stream_->cancel(uids); }

  // Makes all ranks end at the next border.
  void end() { ending_ = true; }
  bool ended() const { return ended_; }
  // Says whether a request is not yet carried out.
  bool behind() const { return !ended_ && (ending_ || !requests_.empty()); }

 private:
  struct Agreed {
    size_t requests = 0;  // how many requests all ranks have
    bool ends = false;
  };
  Agreed agree() const;

  std::unique_ptr<Stream> stream_;
  const Ranks ranks_;
  std::deque<std::function<void(Stream&)>> requests_;
  bool more_ = false;  // the last step said that there is more to do
  bool ending_ = false, ended_ = false;
};

}  // namespace collimate::flow
