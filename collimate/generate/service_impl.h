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

// A Service owns this. Private to service*.cpp.
struct Service::Impl {
  Impl(model::Model& the_model, ServiceOptions the_options);

  // Moves finished-with sequences' memory into new ones.
  std::unique_ptr<Sequence> make_sequence();
  void check_request(const Sequence& sequence, const std::string& where) const;
  void enqueue(std::unique_ptr<Sequence> sequence);

  // Limits the time from now on, in place of what the request's parameters say.
  void limit_time(Sequence& sequence, double seconds);
  // Ends what has run out of time; whether anything has.
  bool expire();

  void check_weights() const;
  // Where speculation may pay, lets each decoding sequence guess; the plan takes what there is room for.
  void propose();
  void apply(const StepPlan& step);
  void apply_fork(const Fork& fork, const StepPlan& step);
  void remove_admitted();
  void advance(const StepPlan& step);
  void append(const DrawnFor& draw);
  void settle(const DrawnFor& draw, int64_t accepted);
  // Gives back the blocks behind every window.
  void release_unread(Sequence& sequence);
  void finish(Sequence& sequence, Finish reason);
  void note_change(Sequence& sequence);
  void drop_finished();  // from the queues
  void count_step(const StepPlan& step);

  void preempt_latest();
  // Everything cached is dropped; running requests wait again, in their order.
  void forget_cache();
  void clear();

  // Declared in order of construction: sequences hold blocks of the pool and must go first.
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
  std::vector<Guess> guesses;      // of one step, by the draft
  std::vector<Sequence*> changed;  // in order of their first untaken change
  std::vector<Emission> taken;     // reused; a prefix of it is what the last take() returned

  double next_end = kNever;  // no request ends by its timeout before
  bool paused = false;
  int64_t window = 0;            // of the layer that reads furthest back; 0: any layer reads all keys
  uint64_t version = 0;          // the caller's
  uint64_t weights_version = 0;  // the weights' own, at the last update
  ServiceCounts stats;
};

}  // namespace collimate::generate
