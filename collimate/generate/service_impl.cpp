#include "collimate/generate/service_impl.h"

#include <algorithm>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/generate/params_check.h"
#include "collimate/generate/token_ids.h"

namespace collimate::generate {
namespace {

std::unique_ptr<Draft> make_draft(const ServiceOptions& options, int64_t vocabulary) {
  if (options.draft == nullptr || options.speculation_tokens == 0 || options.speculation_rows == 0) return nullptr;
  model::Model& draft = *options.draft;
  const ServiceOptions own = of_draft(options, draft.shape(), draft.weights().options().compute);
  return std::make_unique<Draft>(draft, options.exec,
                                 DraftLimits{.kv_type = *own.kv_type,
                                             .blocks = own.cache_blocks,
                                             .batch_tokens = options.max_batch_tokens,
                                             .vocabulary = vocabulary},
                                 options.seed);
}

// Returns the widest attention window of all layers, or 0 if a layer has none: one table of blocks serves all layers,
// so that a single layer without a window keeps every block.
int64_t widest_window(const shape::ModelShape& shape) {
  int64_t widest = 0;
  for (const shape::Block& block : shape.blocks) {
    if (block.attention.window == 0) return 0;
    widest = std::max(widest, block.attention.window);
  }
  return widest;
}

}  // namespace

Service::Impl::Impl(model::Model& the_model, ServiceOptions the_options)
    : model(the_model),
      options(std::move(the_options)),
      pool(options.cache_blocks),
      prefixes(make_prefix_cache(options.prefix_cache, pool)),
      scheduler({options.max_batch_tokens, options.max_batch_sequences, options.speculation_rows}),
      runner(model, options.exec, options.cache_blocks, *options.kv_type, options.seed, options.routed_experts),
      draft(make_draft(options, model.shape().vocabulary)),
      forms(options.tokenizer, model.shape().vocabulary, options.eos_ids),
      window(widest_window(model.shape())),
      version(model.weights().version()),
      weights_version(version) {}

std::unique_ptr<Sequence> Service::Impl::make_sequence() {
  if (spare.empty()) return std::make_unique<Sequence>();
  auto sequence = std::move(spare.back());
  spare.pop_back();
  sequence->reset();
  return sequence;
}

void Service::Impl::check_request(const Sequence& sequence, const std::string& where) const {
  if (sequence.prompt_tokens == 0)
    throw base::InputError(base::expectation(where, "a prompt of at least 1 token", "none"));
  require_token_ids(sequence.ids, model.shape().vocabulary, where);
  if (sequence.prompt_tokens >= options.max_sequence_tokens) {
    const bool whole = options.max_sequence_tokens == model.shape().positions();
    throw base::InputError(
        base::expectation(where, fmt::format("a prompt of at most {} tokens", options.max_sequence_tokens - 1),
                          fmt::to_string(sequence.prompt_tokens),
                          whole ? "a shorter prompt: the model has no more positions"
                                : "a shorter prompt or a larger max_sequence_tokens"));
  }
  check_params(sequence.params, model.shape().vocabulary, options, where);
  // The last token drawn is never run.
  const int64_t most = std::min(options.max_sequence_tokens - sequence.prompt_tokens, sequence.params.max_tokens) +
                       sequence.prompt_tokens;
  if (blocks_for(most - 1) > pool.size()) {
    throw base::InputError(base::expectation(
        where, fmt::format("prompt and completion of at most {} tokens", pool.size() * kBlockTokens + 1),
        fmt::to_string(most), "more cache_blocks or fewer max_tokens"));
  }
}

void Service::Impl::enqueue(std::unique_ptr<Sequence> sequence) {
  sequence->params.top_log_probs = std::min(sequence->params.top_log_probs, model.shape().vocabulary);
  sequence->follow_from_start(options.eos_ids, options.tokenizer);
  sequence->max_length = options.max_sequence_tokens;
  if (sequence->params.timeout_seconds > 0) limit_time(*sequence, sequence->params.timeout_seconds);
  queues.waiting.push_back(sequence.get());
  in_flight.emplace(sequence->uid, std::move(sequence));
}

void Service::Impl::limit_time(Sequence& sequence, double seconds) {
  sequence.ends_at = options.now_seconds() + seconds;
  next_end = std::min(next_end, sequence.ends_at);
}

bool Service::Impl::expire() {
  if (next_end == kNever) return false;
  const double now = options.now_seconds();
  if (now < next_end) return false;
  next_end = kNever;
  bool any = false;
  const auto look_at = [&](Sequence* sequence) {
    if (sequence->ends_at > now) {
      next_end = std::min(next_end, sequence->ends_at);
      return;
    }
    finish(*sequence, Finish::kTimeout);
    note_change(*sequence);
    any = true;
  };
  std::for_each(queues.running.begin(), queues.running.end(), look_at);
  std::for_each(queues.waiting.begin(), queues.waiting.end(), look_at);
  drop_finished();
  return any;
}

void Service::Impl::check_weights() const {
  const uint64_t now = model.weights().version();
  if (now == weights_version) return;
  throw base::GuardError(base::expectation("generate.step", fmt::format("weights of version {}", weights_version),
                                           fmt::to_string(now), "update() after every change of the weights"));
}

void Service::Impl::propose() {
  if (options.speculation_tokens == 0) return;
  const auto decoding = std::count_if(queues.running.begin(), queues.running.end(),
                                      [](const Sequence* sequence) { return sequence->decoding(); });
  guesses.clear();
  for (Sequence* sequence : queues.running) {
    Speculation& speculation = sequence->speculation;
    speculation.proposed.clear();
    if (!sequence->decoding() || decoding >= options.speculation_rows) continue;
    // A guess has one token less than the sequence may draw, as one is drawn after the proposed ones.
    const int64_t most = speculation.length.next(std::min(options.speculation_tokens, sequence->tokens_left() - 1));
    if (most <= 0) continue;
    if (draft != nullptr)
      guesses.push_back({sequence, most});
    else
      speculation.proposer.propose(sequence->ids, most, speculation.proposed);
  }
  if (!guesses.empty()) draft->propose(guesses);
}

void Service::Impl::apply(const StepPlan& step) {
  size_t next_match = 0;
  for (const Admission& admission : step.admissions) {
    Sequence& sequence = *admission.sequence;
    for (int64_t i = 0; i < admission.matched; ++i) {
      sequence.blocks.push_back(pool.acquire(step.matched_blocks[next_match++]));
    }
    sequence.computed = admission.matched * kBlockTokens;
    sequence.routed_experts.clear();  // all that ran before a preemption runs again
    stats.shared_prompt_tokens += sequence.computed;
    queues.running.push_back(&sequence);
  }
  for (const Run& run : step.runs) {
    Sequence& sequence = *run.sequence;
    const auto needed = static_cast<size_t>(blocks_for(sequence.length() + run.proposed));
    while (sequence.blocks.size() < needed) sequence.blocks.push_back(pool.allocate());
    COLLIMATE_CHECK(pool.holders(sequence.blocks[sequence.computed / kBlockTokens].id()) == 1,
                    "request {} would write into a shared block", sequence.uid);
  }
  for (const Fork& fork : step.forks) apply_fork(fork, step);
  if (!step.admissions.empty() || !step.forks.empty()) remove_admitted();
}

void Service::Impl::apply_fork(const Fork& fork, const StepPlan& step) {
  const Sequence& leader = *step.runs[fork.run].sequence;
  Sequence& sequence = *fork.sequence;
  const int64_t full = sequence.prompt_tokens / kBlockTokens;
  sequence.routed_experts = leader.routed_experts;  // also those of blocks that the leader has given back
  sequence.blocks.assign(leader.blocks.begin(), leader.blocks.begin() + full);
  if (sequence.prompt_tokens % kBlockTokens != 0) sequence.blocks.push_back(pool.allocate());
  stats.shared_prompt_tokens += sequence.prompt_tokens;
  queues.running.push_back(&sequence);
}

// Removes the admitted sequences from the queue. They have blocks now and are among the first max_batch_sequences.
void Service::Impl::remove_admitted() {
  auto& waiting = queues.waiting;
  const auto window = std::min<int64_t>(static_cast<int64_t>(waiting.size()), options.max_batch_sequences);
  const auto end = waiting.begin() + window;
  waiting.erase(std::remove_if(waiting.begin(), end, [](const Sequence* s) { return !s->blocks.empty(); }), end);
}

void Service::Impl::advance(const StepPlan& step) {
  for (const Run& run : step.runs) {
    Sequence& sequence = *run.sequence;
    const bool decodes = sequence.decoding();
    (decodes ? stats.decoded_tokens : stats.prefill_tokens) += run.count;
    sequence.computed += run.count;
    prefixes->publish(version, sequence);
    release_unread(sequence);
  }
  for (const Fork& fork : step.forks) {
    const Sequence& leader = *step.runs[fork.run].sequence;
    fork.sequence->computed = fork.sequence->prompt_tokens;
    release_unread(*fork.sequence);
    fork.sequence->published = leader.published;
    fork.sequence->chain_key = leader.chain_key;
  }
}

void Service::Impl::append(const DrawnFor& draw) {
  Sequence& sequence = *draw.sequence;
  const int64_t before = sequence.length();
  Finish reason = Finish::kRunning;
  for (const Drawn& drawn : draw.drawn) {
    sequence.computed = sequence.length();  // all draws but the last are proposed tokens, which have been run
    sequence.append(drawn.token, drawn.log_prob, static_cast<int64_t>(version), drawn.top);
    reason = finish_of(sequence, options.eos_ids);
    if (reason != Finish::kRunning) break;
  }
  note_change(sequence);
  if (!draw.proposed.empty()) settle(draw, sequence.length() - before - 1);
  if (reason == Finish::kError)
    base::log_warning("a completion of {} tokens cannot go on as its form demands: {}", sequence.completion_tokens(),
                      sequence.history.constraint->problem());
  if (reason != Finish::kRunning) finish(sequence, reason);
}

// Settles a run with proposed tokens, of which the sequence has got `accepted`. Blocks of the others are given back.
void Service::Impl::settle(const DrawnFor& draw, int64_t accepted) {
  Sequence& sequence = *draw.sequence;
  const auto proposed = static_cast<int64_t>(draw.proposed.size());
  stats.proposed_tokens += proposed;
  stats.accepted_tokens += accepted;
  stats.decoded_tokens += accepted;
  sequence.speculation.length.observe(proposed, accepted);
  prefixes->publish(version, sequence);
  sequence.trim_cache();
}

void Service::Impl::release_unread(Sequence& sequence) {
  if (window > 0) runner.routed().append_to(sequence);
  sequence.release_behind(window);
}

void Service::Impl::finish(Sequence& sequence, Finish reason) {
  sequence.finish = reason;
  runner.routed().append_to(sequence);
  sequence.drop_cache();
  if (draft != nullptr) draft->forget(sequence.uid);
}

void Service::Impl::note_change(Sequence& sequence) {
  if (sequence.changed) return;
  sequence.changed = true;
  changed.push_back(&sequence);
}

void Service::Impl::drop_finished() {
  const auto finished = [](const Sequence* sequence) { return sequence->finish != Finish::kRunning; };
  std::erase_if(queues.running, finished);
  std::erase_if(queues.waiting, finished);
}

void Service::Impl::count_step(const StepPlan& step) {
  const auto rows = static_cast<int64_t>(step.runs.size() + step.forks.size());
  ++stats.steps;
  stats.rows += rows;
  if (queues.waiting.empty()) return;
  ++stats.queued_steps;
  stats.queued_rows += rows;
}

void Service::Impl::preempt_latest() {
  Sequence* sequence = queues.running.back();
  queues.running.pop_back();
  sequence->drop_cache();
  queues.waiting.push_front(sequence);
  ++stats.preemptions;
}

void Service::Impl::forget_cache() {
  while (!queues.running.empty()) {
    Sequence* sequence = queues.running.back();
    queues.running.pop_back();
    sequence->drop_cache();
    if (sequence->finish == Finish::kRunning) queues.waiting.push_front(sequence);
  }
  prefixes->clear();
}

void Service::Impl::clear() {
  forget_cache();
  queues.waiting.clear();
  changed.clear();
  in_flight.clear();
  if (draft != nullptr) draft->clear();
  next_end = kNever;
}

}  // namespace collimate::generate
