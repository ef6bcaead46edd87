#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "collimate/generate/block_pool.h"
#include "collimate/generate/draft.h"
#include "collimate/generate/forms.h"
#include "collimate/generate/prefix_cache.h"
#include "collimate/generate/runner.h"
#include "collimate/generate/scheduler.h"
#include "collimate/generate/sequence.h"
#include "collimate/generate/service.h"

namespace collimate::generate {

// The state of a Service, private to service*.cpp.
struct Service::Impl {
  Impl(model::Model& the_model, ServiceOptions the_options);

  // Returns an empty sequence, which reuses the memory of one that has ended if there is any.
  std::unique_ptr<Sequence> make_sequence();
  void check_request(const Sequence& sequence, const std::string& where) const;
  void enqueue(std::unique_ptr<Sequence> sequence);

  // Lets the sequence end `seconds` from now, whatever the request's parameters say.
  void limit_time(Sequence& sequence, double seconds);
  // Ends the requests whose time is over and returns whether there were any.
  bool expire();

  void check_weights() const;
  // Lets each decoding sequence guess tokens if speculation may pay; the plan takes as many as there is room for.
  void propose();
  void apply(const StepPlan& step);
  void apply_fork(const Fork& fork, const StepPlan& step);
  void remove_admitted();
  void advance(const StepPlan& step);
  void append(const DrawnFor& draw);
  void settle(const DrawnFor& draw, int64_t accepted);
  // Gives back the blocks that no layer's attention window reaches any more.
  void release_unread(Sequence& sequence);
  void finish(Sequence& sequence, Finish reason);
  void note_change(Sequence& sequence);
  void drop_finished();  // from the queues
  void count_step(const StepPlan& step);

  void preempt_latest();
  // Drops all that is cached; running requests wait again, in their order, before the other waiting ones.
  void forget_cache();
  void clear();

  // The pool is declared before the sequences, which hold blocks of it and must be destroyed first.
  model::Model& model;
  ServiceOptions options;
  BlockPool pool;
  std::unique_ptr<PrefixCache> prefixes;
  Scheduler scheduler;
  Runner runner;
  std::unique_ptr<Draft> draft;  // null: sequences guess by themselves
  Forms forms;

  std::unordered_map<int64_t, std::unique_ptr<Sequence>> in_flight;  // by uid; until the last emission is taken
  std::vector<std::unique_ptr<Sequence>> spare;
  Queues queues;
  StepPlan plan;
  std::vector<Guess> guesses;      // that the draft makes in one step
  std::vector<Sequence*> changed;  // in the order of their first change since the last take()
  std::vector<Emission> taken;     // reused; the last take() returned its first entries

  double next_end = kNever;  // no request ends by its timeout before this time
  bool paused = false;
  int64_t window = 0;            // of the layer that reads furthest back; 0: some layer reads all keys
  uint64_t version = 0;          // the caller's
  uint64_t weights_version = 0;  // the weights' own, at the last update
  ServiceCounts stats;
};

}  // namespace collimate::generate
