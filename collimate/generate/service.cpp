#include "collimate/generate/service.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/generate/kv_cache_option.h"
#include "collimate/generate/service_impl.h"

namespace collimate::generate {
namespace {

// Returns enough blocks that no request ever waits for memory, but at most 4 GiB of them, as a model with a long
// context should not take all of a machine; fewer blocks change no result. Every stage has the same number, as all do
// the same steps, and the layers of all stages count.
int64_t default_blocks(const ServiceOptions& options, shape::ModelShape shape) {
  constexpr int64_t kMostBytes = int64_t{4} << 30;
  shape.own_blocks = {shape::BlockRange()};
  const int64_t block_bytes = model::kv_block_bytes(shape, *options.kv_type);
  const int64_t one = blocks_for(options.max_sequence_tokens);
  return std::clamp(kMostBytes / block_bytes, one, std::max(one, options.max_batch_sequences * one));
}

void check_draft(const shape::ModelShape& draft) {
  if (draft.head == shape::Head::kLanguageModel) return;
  throw base::InputError(base::expectation("generate.draft", "a language model",
                                           fmt::format("one with the head {}", shape::head_name(draft.head))));
}

void fill_request(const Batch& requests, int64_t row, const SamplingParams& params, Sequence& sequence) {
  sequence.uid = requests.get(batch::kUid, row);
  sequence.prompt_uid = requests.has(batch::kPromptUid.name) ? requests.get(batch::kPromptUid, row) : sequence.uid;
  const auto prompt = requests.row(batch::kIds, row);
  sequence.ids.assign(prompt.begin(), prompt.end());
  sequence.prompt_tokens = sequence.length();
  sequence.params = params;
  if (requests.has(batch::kSampling.name)) {
    sequence.params = SamplingParams::from_json(requests.json(batch::kSampling, row));
  }
}

// Takes the last `drawn` ids as the beginning of the completion. Throws InputError unless a prompt stands before them
// and the request has room for another token, where it may have `longest` tokens with its prompt.
void begin_behind(int64_t drawn, int64_t longest, const std::string& where, Sequence& sequence) {
  const int64_t length = sequence.length();
  if (drawn < 0 || drawn >= length)
    throw base::InputError(base::expectation(where, fmt::format("0 to {} drawn tokens behind a prompt", length - 1),
                                             fmt::to_string(drawn)));
  sequence.prompt_tokens = length - drawn;
  const int64_t room = std::min(longest - sequence.prompt_tokens, sequence.params.max_tokens);
  if (drawn >= room)
    throw base::InputError(base::expectation(where, fmt::format("fewer than {} drawn tokens", room),
                                             fmt::to_string(drawn), "a larger max_tokens"));
  const auto tokens = static_cast<size_t>(drawn);
  sequence.log_probs.assign(tokens, 0.F);
  sequence.versions.assign(tokens, 0);
  sequence.emitted = drawn;
}

void fill_emission(Sequence& sequence, Emission& emission) {
  const int64_t from = sequence.emitted;
  emission.uid = sequence.uid;
  emission.tokens.assign(sequence.ids.begin() + sequence.prompt_tokens + from, sequence.ids.end());
  emission.log_probs.assign(sequence.log_probs.begin() + from, sequence.log_probs.end());
  emission.versions.assign(sequence.versions.begin() + from, sequence.versions.end());
  emission.top_log_probs.assign(sequence.top_log_probs.begin() + from * sequence.params.top_log_probs,
                                sequence.top_log_probs.end());
  emission.routed_experts.clear();
  if (sequence.finish != Finish::kRunning) emission.routed_experts.swap(sequence.routed_experts);
  emission.finish = sequence.finish;
  sequence.emitted = sequence.completion_tokens();
  sequence.changed = false;
}

}  // namespace

const char* finish_reason(Finish finish) {
  switch (finish) {
    case Finish::kLength:
      return "length";
    case Finish::kTimeout:
      return "timeout";
    case Finish::kError:
      return "error";
    case Finish::kRunning:
    case Finish::kEos:
    case Finish::kStop:
    case Finish::kCancelled:
      return "stop";
  }
  COLLIMATE_CHECK(false, "no finish {}", static_cast<int32_t>(finish));
}

bool cut_off(Finish finish) {
  switch (finish) {
    case Finish::kLength:
    case Finish::kTimeout:
    case Finish::kCancelled:
    case Finish::kError:
      return true;
    case Finish::kRunning:
    case Finish::kEos:
    case Finish::kStop:
      return false;
  }
  COLLIMATE_CHECK(false, "no finish {}", static_cast<int32_t>(finish));
}

ServiceOptions resolved(ServiceOptions options, const shape::ModelShape& shape, tensor::ComputeType compute) {
  const auto require = [](int64_t least, const char* name, int64_t got) {
    if (got >= least) return;
    throw base::InputError(
        base::expectation(std::string("generate.") + name, fmt::format("at least {}", least), fmt::to_string(got)));
  };
  require(1, "max_batch_tokens", options.max_batch_tokens);
  require(1, "max_batch_sequences", options.max_batch_sequences);
  require(0, "cache_blocks", options.cache_blocks);
  require(0, "speculation_tokens", options.speculation_tokens);
  require(0, "speculation_rows", options.speculation_rows);
  if (options.draft != nullptr) check_draft(options.draft->shape());
  if (options.max_sequence_tokens == 0) options.max_sequence_tokens = shape.positions();
  if (options.max_sequence_tokens < 2 || options.max_sequence_tokens > shape.positions()) {
    throw base::InputError(base::expectation("generate.max_sequence_tokens",
                                             fmt::format("from 2 to the model's {} positions", shape.positions()),
                                             fmt::to_string(options.max_sequence_tokens)));
  }
  if (!options.kv_type) options.kv_type = model::kv_type(compute);
  if (options.cache_blocks == 0) options.cache_blocks = default_blocks(options, shape);
  if (options.eos_ids.empty()) options.eos_ids.assign(shape.eos_ids.begin(), shape.eos_ids.end());
  if (!options.now_seconds) options.now_seconds = base::now_seconds;
  return options;
}

ServiceOptions of_draft(const ServiceOptions& options, const shape::ModelShape& draft, tensor::ComputeType compute) {
  // Guesses hold more often where both caches round alike.
  return resolved({.kv_type = options.kv_type && is_rounded(*options.kv_type) ? options.kv_type : std::nullopt,
                   .max_batch_tokens = options.max_batch_tokens,
                   .max_batch_sequences = std::min(options.speculation_rows, options.max_batch_sequences),
                   .max_sequence_tokens = std::min(options.max_sequence_tokens, draft.positions())},
                  draft, compute);
}

ServiceStats total_of(std::span<const ServiceStats> parts) {
  ServiceStats total;
  total.parts = std::ssize(parts);
  for (const ServiceStats& part : parts) {
    std::vector<int64_t> counts;
    ServiceCounts::fields(part, [&](const char*, int64_t count, const char*) { counts.push_back(count); });
    auto next = counts.begin();
    ServiceCounts::fields(total, [&](const char*, int64_t& count, const char*) { count += *next++; });
    for (int64_t ServiceStats::*now :
         {&ServiceStats::slots, &ServiceStats::running, &ServiceStats::waiting, &ServiceStats::blocks_used,
          &ServiceStats::blocks_peak, &ServiceStats::blocks, &ServiceStats::cache_bytes})
      total.*now += part.*now;
  }
  return total;
}

Service::Service(model::Model& model, ServiceOptions options)
    : impl_(std::make_unique<Impl>(model,
                                   resolved(std::move(options), model.shape(), model.weights().options().compute))) {}

Service::~Service() = default;

void Service::submit(const Batch& requests) {
  std::vector<std::unique_ptr<Sequence>> accepted;
  std::unordered_set<int64_t> uids;
  for (int64_t row = 0; row < requests.rows(); ++row) {
    accepted.push_back(impl_->make_sequence());
    Sequence& sequence = *accepted.back();
    fill_request(requests, row, impl_->options.sampling, sequence);
    const std::string where = fmt::format("generate.submit, row {}", row);
    if (impl_->in_flight.contains(sequence.uid)) {
      throw base::InputError(base::expectation(where, "a uid that is not in flight", fmt::to_string(sequence.uid)));
    }
    if (requests.has(kDrawnTokens.name))
      begin_behind(requests.get(kDrawnTokens, row), impl_->options.max_sequence_tokens, where, sequence);
    impl_->check_request(sequence, where);
    const int64_t top = std::min(sequence.params.top_log_probs, impl_->model.shape().vocabulary);
    sequence.top_log_probs.resize(static_cast<size_t>(sequence.completion_tokens() * top));
    sequence.history.constraint = impl_->forms.make(sequence.params, where);
    if (!uids.insert(sequence.uid).second) {
      throw base::InputError(base::expectation(where, "uids that differ", fmt::format("{} twice", sequence.uid)));
    }
  }
  for (auto& sequence : accepted) {
    Sequence& request = *sequence;
    impl_->enqueue(std::move(sequence));
    if (request.fresh() || !request.history.stuck()) continue;
    impl_->finish(request, Finish::kError);  // as its form demands, behind the drawn tokens
    impl_->note_change(request);
  }
  impl_->drop_finished();
}

bool Service::step() { return impl_->model.end_step(step_own()); }

bool Service::step_own() {
  Impl& s = *impl_;
  if (s.paused) return false;
  const bool expired = s.expire();
  if (s.queues.running.empty() && s.queues.waiting.empty()) return expired;
  s.check_weights();
  while (Scheduler::latest_to_preempt(s.queues, s.pool) != nullptr) s.preempt_latest();
  s.propose();
  s.scheduler.plan(s.queues, s.pool, *s.prefixes, s.version, s.plan);
  COLLIMATE_CHECK(!s.plan.empty(), "{} requests wait and none can run", s.queues.waiting.size());
  try {
    s.apply(s.plan);
    const auto drawn = s.runner.run(s.plan);
    s.advance(s.plan);
    for (const DrawnFor& draw : drawn) s.append(draw);
  } catch (...) {
    s.forget_cache();  // half-written blocks are no use; the requests keep their place
    throw;
  }
  s.drop_finished();
  s.count_step(s.plan);
  return true;
}

std::span<const Emission> Service::take() {
  Impl& s = *impl_;
  const size_t count = s.changed.size();
  if (s.taken.size() < count) s.taken.resize(count);
  for (size_t i = 0; i < count; ++i) {
    Sequence& sequence = *s.changed[i];
    fill_emission(sequence, s.taken[i]);
    if (sequence.finish == Finish::kRunning) continue;
    const auto place = s.in_flight.find(sequence.uid);
    s.spare.push_back(std::move(place->second));
    s.in_flight.erase(place);
  }
  s.changed.clear();
  return {s.taken.data(), count};
}

void Service::pause() { impl_->paused = true; }
void Service::resume() { impl_->paused = false; }

void Service::release() {
  impl_->forget_cache();
  impl_->runner.release();
  if (impl_->draft != nullptr) impl_->draft->release();
}

void Service::update(uint64_t version) {
  const uint64_t weights_version = impl_->model.weights().version();
  if (version == impl_->version && weights_version == impl_->weights_version) return;
  impl_->forget_cache();
  impl_->version = version;
  impl_->weights_version = weights_version;
}

void Service::cancel(std::span<const int64_t> uids) {
  Impl& s = *impl_;
  for (const int64_t uid : uids) {
    const auto place = s.in_flight.find(uid);
    if (place == s.in_flight.end() || place->second->finish != Finish::kRunning) continue;
    s.finish(*place->second, Finish::kCancelled);
    s.note_change(*place->second);
  }
  s.drop_finished();
}

int64_t Service::running() const {
  return static_cast<int64_t>(impl_->queues.running.size() + impl_->queues.waiting.size());
}

uint64_t Service::version() const { return impl_->version; }

ServiceStats Service::stats() const {
  ServiceStats stats{impl_->stats};
  stats.blocks_used = impl_->pool.used();
  stats.blocks_peak = impl_->pool.peak();
  stats.blocks = impl_->pool.size();
  stats.cache_bytes = impl_->runner.cache().bytes();
  stats.slots = std::min(impl_->options.max_batch_sequences, impl_->options.max_batch_tokens);
  stats.running = static_cast<int64_t>(impl_->queues.running.size());
  stats.waiting = static_cast<int64_t>(impl_->queues.waiting.size());
  return stats;
}

}  // namespace collimate::generate
