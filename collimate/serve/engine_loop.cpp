#include "collimate/serve/engine_loop.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/log.h"
#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::serve {
namespace {

int64_t choices_of(const Work& work) { return static_cast<int64_t>(work.prompts.size()) * work.choices_per_prompt; }

uint64_t hash_ids(std::span<const int32_t> ids, uint64_t seed) {
  for (const int32_t id : ids) seed = base::mix(seed, static_cast<uint64_t>(id));
  return seed;
}

// Returns a uid for each choice, which decides its draws. If the request has a seed, a uid depends on the seed, the
// prompt and how often that prompt came before in the request; else on the server's seed and the request's number in
// the order of arrival.
std::vector<int64_t> uids_of(const Work& work, int64_t number, uint64_t server_seed) {
  std::vector<int64_t> uids;
  std::unordered_map<uint64_t, uint64_t> seen;
  for (int64_t choice = 0; choice < choices_of(work); ++choice) {
    const auto& prompt = base::at(work.prompts, choice / work.choices_per_prompt);
    const uint64_t base = work.seed
                              ? hash_ids(prompt, base::stable_hash("serve.seeded", static_cast<uint64_t>(*work.seed)))
                              : base::mix(base::stable_hash("serve.request", server_seed), number);
    uids.push_back(std::bit_cast<int64_t>(base::mix(base, seen[base]++)));
  }
  return uids;
}

Batch to_batch(const Work& work, const std::vector<int64_t>& uids, int64_t number) {
  std::vector<int64_t> prompt_uids;
  std::vector<std::vector<int32_t>> ids;
  for (size_t choice = 0; choice < uids.size(); ++choice) {
    const size_t prompt = choice / static_cast<size_t>(work.choices_per_prompt);
    ids.push_back(work.prompts[prompt]);
    prompt_uids.push_back(std::bit_cast<int64_t>(base::mix(static_cast<uint64_t>(number), prompt)));
  }
  Batch batch(static_cast<int64_t>(uids.size()));
  batch.set(batch::kUid, uids);
  batch.set(batch::kPromptUid, std::move(prompt_uids));
  batch.set_ragged(batch::kIds, ids);
  batch.set_json(batch::kSampling, std::vector<nlohmann::json>(uids.size(), work.sampling.to_json()));
  return batch;
}

std::exception_ptr shutting_down() {
  return std::make_exception_ptr(
      DrainingError(base::expectation("serve", "the request to finish before the server shuts down", "a shutdown")));
}

}  // namespace

EngineLoop::EngineLoop(Engine engine, EngineLimits limits, uint64_t seed)
    : engine_(std::move(engine)),
      limits_(limits),
      seed_(seed),
      now_seconds_(engine_.now_seconds ? engine_.now_seconds : base::now_seconds),
      queue_(static_cast<size_t>(limits.requests), {"requests", "the engine", "the server"}),
      status_{.service = engine_.service->stats()},
      thread_([this] { run_guarded(); }) {}

EngineLoop::~EngineLoop() {
  drain(base::Deadline::after(0));
  queue_.close();
  thread_.join();
}

std::shared_ptr<Channel> EngineLoop::submit(Work work) {
  const int64_t choices = choices_of(work);
  const auto capacity = work.whole_answer ? std::nullopt : std::optional(choices * limits_.buffer_tokens);
  auto channel = std::make_shared<Channel>(choices, capacity);
  const std::lock_guard lock(mutex_);
  if (draining_) std::rethrow_exception(shutting_down());
  if (!status_.broken.empty()) throw base::RunError(status_.broken);
  if (status_.in_flight + choices > limits_.requests) {
    throw OverloadedError(base::expectation("serve", fmt::format("at most {} completions in flight", limits_.requests),
                                            fmt::format("{} and {} more", status_.in_flight, choices), "again later"));
  }
  Flight flight{.work = std::move(work), .channel = channel, .running = choices, .submitted_seconds = now_seconds_()};
  COLLIMATE_CHECK(queue_.try_push(flight), "fewer requests than completions are in flight");
  status_.in_flight += choices;
  return channel;
}

int64_t EngineLoop::drain(const base::Deadline& deadline) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  const auto idle = [&] { return status_.in_flight == 0 || !status_.broken.empty(); };
  if (base::wait_until(idle_, lock, deadline, idle)) return 0;
  const int64_t left = status_.in_flight;
  cut_ = true;
  idle_.wait(lock, idle);  // takes the time of one step at most
  return left;
}

EngineStatus EngineLoop::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

// Runs the loop. An exception that even fail_all cannot handle ends it: the cause is kept as `broken`, and every
// request fails with it.
void EngineLoop::run_guarded() {
  const base::LogPrefix prefix("engine");
  try {
    if (engine_.begin) engine_.begin();
    run();
  } catch (const std::exception& error) {
    base::log_error("the engine has stopped: {}", error.what());
    {
      const std::lock_guard lock(mutex_);
      status_.broken = error.what();
    }
    const auto fail = [&](const Flight& flight) {
      flight.channel->fail(std::make_exception_ptr(base::RunError(error.what())));
    };
    for (const auto* list : {&flights_, &scoring_, &delayed_}) std::for_each(list->begin(), list->end(), fail);
    while (auto flight = queue_.try_pop()) fail(*flight);
    idle_.notify_all();
  }
}

void EngineLoop::run() {
  while (true) {
    if (flights_.empty() && scoring_.empty() && delayed_.empty()) {
      auto flight = queue_.pop(base::Deadline::never());
      if (!flight) return;
      begin(std::move(*flight));
    }
    while (auto flight = queue_.try_pop()) begin(std::move(*flight));
    score_piece();
    if (cut_) fail_all(shutting_down);
    try {
      turn();
    } catch (const std::exception& error) {
      base::log_error("a step failed: {}", error.what());
      {
        const std::lock_guard lock(mutex_);
        ++status_.failures;
      }
      fail_all([&] { return std::make_exception_ptr(base::RunError(error.what())); });
    }
  }
}

void EngineLoop::turn() {
  end_waiting();
  cancel_unwanted();
  engine_.service->step();
  deliver();
  start_delayed();
  publish();
}

void EngineLoop::begin(Flight flight) {
  flight.number = begun_++;
  flight.uids = uids_of(flight.work, flight.number, seed_);
  flight.last_token_seconds.assign(flight.uids.size(), -1.0);
  if (flight.work.prompt_log_probs) {
    scoring_.push_back(std::move(flight));
    return;
  }
  delayed_.push_back(std::move(flight));
  if (!busy(delayed_.back())) start(std::prev(delayed_.end()));
}

bool EngineLoop::busy(const Flight& flight) const {
  return std::any_of(flight.uids.begin(), flight.uids.end(), [&](int64_t uid) { return by_uid_.contains(uid); });
}

void EngineLoop::start_delayed() {
  for (auto flight = delayed_.begin(); flight != delayed_.end();) {
    const auto next = std::next(flight);
    if (!busy(*flight)) start(flight);
    flight = next;
  }
}

// Moves a request from the delayed ones to those in flight. If it cannot begin, fails it with the cause.
void EngineLoop::start(std::list<Flight>::iterator flight) {
  flights_.splice(flights_.end(), delayed_, flight);
  try {
    enter(*flight);
  } catch (const std::exception&) {
    release(flight->running);
    flight->channel->fail(std::current_exception());
    flights_.erase(flight);
  }
}

void EngineLoop::enter(Flight& flight) {
  const bool draws = flight.work.sampling.max_tokens > 0;
  if (double& timeout = flight.work.sampling.timeout_seconds; timeout > 0) timeout = time_left(flight);
  if (draws) engine_.service->submit(to_batch(flight.work, flight.uids, flight.number));
  flight.channel->accept(std::move(flight.prompt_log_probs));
  for (int64_t choice = 0; choice < flight.channel->choices(); ++choice) {
    const int64_t uid = base::at(flight.uids, choice);
    by_uid_[uid] = {&flight, choice};
    if (!draws) {
      end(flight, choice, generate::Finish::kLength);
      flight.channel->push(choice, {.uid = uid, .finish = generate::Finish::kLength});
    }
  }
  if (!draws) std::erase_if(flights_, [](const Flight& f) { return f.running == 0; });
}

void EngineLoop::score_piece() {
  if (scoring_.empty()) return;
  const auto flight = scoring_.begin();
  try {
    if (!score_next(*flight)) return;
  } catch (const std::exception&) {
    release(flight->running);
    flight->channel->fail(std::current_exception());
    scoring_.erase(flight);
    return;
  }
  delayed_.splice(delayed_.end(), scoring_, flight);
  if (!busy(*flight)) start(flight);
}

// Scores the next piece of a request's prompts. Returns true once all of them are scored.
bool EngineLoop::score_next(Flight& flight) const {
  if (!engine_.score) {
    throw base::InputError(base::expectation("serve", "an engine that scores prompts", "one that does not"));
  }
  const Work& work = flight.work;
  if (!flight.scoring) flight.scoring = engine_.score(work.prompts[flight.prompt_log_probs.size()], work.sampling);
  if (auto scored = flight.scoring()) {
    flight.prompt_log_probs.push_back(std::move(*scored));
    flight.scoring = nullptr;
  }
  return flight.prompt_log_probs.size() == work.prompts.size();
}

// Returns the seconds that are left of a request's timeout, always above 0: the service ends requests whose time is up.
double EngineLoop::time_left(const Flight& flight) const {
  constexpr double kMoment = std::numeric_limits<double>::min();
  return std::max(kMoment, flight.work.sampling.timeout_seconds - (now_seconds_() - flight.submitted_seconds));
}

// Ends requests that have not begun and have no reader any more or no time left.
void EngineLoop::end_waiting() {
  const auto end_one = [this](Flight& flight, int64_t EngineStatus::*count, const char* got) {
    {
      const std::lock_guard lock(mutex_);
      status_.*count += flight.running;
    }
    release(flight.running);
    flight.channel->fail(std::make_exception_ptr(
        ExpiredError(base::expectation("serve", "a request to begin within its timeout", got, "a longer timeout"))));
  };
  for (auto* list : {&scoring_, &delayed_}) {
    std::erase_if(*list, [&](Flight& flight) {
      bool wanted = false;
      for (int64_t choice = 0; choice < flight.channel->choices(); ++choice) wanted |= flight.channel->wanted(choice);
      const double timeout = flight.work.sampling.timeout_seconds;
      const bool late = timeout > 0 && now_seconds_() - flight.submitted_seconds >= timeout;
      if (wanted && !late) return false;
      end_one(flight, wanted ? &EngineStatus::expired : &EngineStatus::cancelled,
              wanted ? "none in time" : "no reader");
      return true;
    });
  }
}

void EngineLoop::cancel_unwanted() {
  std::vector<int64_t> unwanted;
  for (const auto& [uid, place] : by_uid_) {
    if (!place.flight->channel->wanted(place.choice)) unwanted.push_back(uid);
  }
  if (unwanted.empty()) return;
  engine_.service->cancel(unwanted);  // their last emissions come with the next take()
}

void EngineLoop::deliver() {
  const double now = now_seconds_();
  for (const generate::Emission& emission : engine_.service->take()) {
    const auto found = by_uid_.find(emission.uid);
    COLLIMATE_CHECK(found != by_uid_.end(), "an emission of {}, which is not in flight", emission.uid);
    const Place place = found->second;
    observe_tokens(place, static_cast<int64_t>(emission.tokens.size()), now);
    if (emission.finish != generate::Finish::kRunning) end(*place.flight, place.choice, emission.finish);
    place.flight->channel->push(place.choice, emission);
  }
  std::erase_if(flights_, [](const Flight& flight) { return flight.running == 0; });
}

void EngineLoop::observe_tokens(const Place& place, int64_t tokens, double now) {
  if (tokens == 0) return;
  double& last = base::at(place.flight->last_token_seconds, place.choice);
  if (last >= 0) between_tokens_.observe((now - last) / static_cast<double>(tokens), tokens);
  last = now;
}

void EngineLoop::end(Flight& flight, int64_t choice, generate::Finish finish) {
  using generate::Finish;
  by_uid_.erase(base::at(flight.uids, choice));
  --flight.running;
  {
    const std::lock_guard lock(mutex_);
    ++(finish == Finish::kCancelled || finish == Finish::kError ? status_.cancelled
       : finish == Finish::kTimeout                             ? status_.expired
                                                                : status_.finished);
  }
  release(1);
}

void EngineLoop::fail_all(const std::function<std::exception_ptr()>& cause) {
  std::vector<int64_t> uids;
  for (const auto& [uid, place] : by_uid_) uids.push_back(uid);
  engine_.service->cancel(uids);
  engine_.service->take();
  by_uid_.clear();
  flights_.splice(flights_.end(), scoring_);
  flights_.splice(flights_.end(), delayed_);
  int64_t choices = 0;
  for (const Flight& flight : flights_) choices += flight.running;
  {
    const std::lock_guard lock(mutex_);
    status_.cancelled += choices;
  }
  release(choices);
  for (const Flight& flight : flights_) flight.channel->fail(cause());
  flights_.clear();
  publish();
}

// Lowers the number of completions in flight. Called before the reader is told of the end, because it may then send the
// next request at once.
void EngineLoop::release(int64_t choices) {
  const std::lock_guard lock(mutex_);
  status_.in_flight -= choices;
  if (status_.in_flight == 0) idle_.notify_all();
}

void EngineLoop::publish() {
  const generate::ServiceStats stats = engine_.service->stats();
  const std::lock_guard lock(mutex_);
  status_.service = stats;
  status_.between_tokens = between_tokens_;
}

}  // namespace collimate::serve
