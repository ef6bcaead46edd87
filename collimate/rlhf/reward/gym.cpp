#include "collimate/rlhf/reward/gym.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/rlhf/reward/python_process.h"

namespace collimate::rlhf {
namespace {

using nlohmann::json;

constexpr const char* kModule = "gym_worker";

// Reads the answer to a step, which python/collimate/gym_worker.py gives.
GymReply reply_of(int64_t episode, const json& answer, const GymSection& options) {
  GymReply reply{.episode = episode};
  if (answer.contains("error")) {
    reply.error = with_remedy(answer.at("error").get<std::string>(), options);
    reply.trace = answer.at("trace").get<std::string>();
    return reply;
  }
  if (!answer.at("observation").is_null()) reply.observation = answer.at("observation").get<std::string>();
  reply.reward = answer.at("reward").get<double>();
  reply.done = answer.at("done").get<bool>();
  return reply;
}

json request_of(const GymTurn& turn) {
  json request = {{"episode", turn.episode}, {"completion", turn.completion}};
  if (turn.first) request["begin"] = {{"prompt", turn.prompt}, {"example", turn.example}};
  return request;
}

}  // namespace

struct Gym::Impl {
  // One process, and the thread that speaks with it. The thread alone uses `process` and `living`.
  struct Worker {
    std::unique_ptr<PythonProcess> process;  // null: the next first step starts one
    std::set<int64_t> living;                // samples with an environment in the process
    std::deque<GymTurn> turns;               // under the mutex
    std::vector<int64_t> forgotten;          // under the mutex
    std::thread thread;
  };

  explicit Impl(const GymSection& given) : options(given), asked(python_function(given.gym, "Environment")) {}

  std::unique_ptr<PythonProcess> started() {
    return std::make_unique<PythonProcess>(options, kModule, asked, "gym", [this] { end_if_stopped(); });
  }

  void end_if_stopped() {
    const std::lock_guard lock(mutex);
    if (stopped) throw base::RunError("the environments are no longer needed");
  }

  // Waits for work and takes one turn, and all that is forgotten. Returns nothing at the end.
  std::optional<std::pair<GymTurn, std::vector<int64_t>>> next(Worker& worker) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stopped || !worker.turns.empty(); });
    if (stopped) return std::nullopt;
    GymTurn turn = std::move(worker.turns.front());
    worker.turns.pop_front();
    return std::pair(std::move(turn), std::exchange(worker.forgotten, {}));
  }

  GymReply step(Worker& worker, const GymTurn& turn, const std::vector<int64_t>& forgotten) {
    if (!turn.first && !worker.living.contains(turn.episode))
      return {.episode = turn.episode,
              .error = "the process with this sample's environment ended at another sample's step"};
    try {
      if (!worker.process) worker.process = started();
      json request = request_of(turn);
      request["forget"] = json::array();
      for (const int64_t other : forgotten)
        if (worker.living.erase(other) > 0) request["forget"].push_back(other);
      worker.living.insert(turn.episode);
      return worker.process->ask(
          request, options.timeout_seconds, [this] { end_if_stopped(); },
          [&](const json& answer) { return reply_of(turn.episode, answer, options); });
    } catch (const std::exception& error) {
      worker.process.reset();
      worker.living.clear();
      return {.episode = turn.episode, .error = error.what()};
    }
  }

  void work(Worker& worker) {
    while (auto work = next(worker)) {
      GymReply reply = step(worker, work->first, work->second);
      if (!reply.error.empty() || reply.done || !reply.observation) worker.living.erase(reply.episode);
      const std::lock_guard lock(mutex);
      replies.push_back(std::move(reply));
      changed.notify_all();
    }
  }

  Worker& worker_of(int64_t episode) { return *base::at(workers, static_cast<uint64_t>(episode) % workers.size()); }

  GymSection options;
  PythonFunction asked;
  std::vector<std::unique_ptr<Worker>> workers;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<GymReply> replies;  // under the mutex
  int64_t pending = 0;            // of the caller's thread
  bool stopped = false;           // under the mutex
  bool has_reset = false;
};

Gym::Gym(const GymSection& options) : impl_(std::make_unique<Impl>(options)) {
  for (int64_t i = 0; i < options.workers; ++i) {
    impl_->workers.push_back(std::make_unique<Impl::Worker>());
    impl_->workers.back()->process = impl_->started();
  }
  impl_->has_reset =
      impl_->workers.front()->process->facts([](const json& facts) { return facts.at("has_reset").get<bool>(); });
  for (const auto& worker : impl_->workers)
    worker->thread = std::thread([impl = impl_.get(), one = worker.get()] { impl->work(*one); });
  if (options.sandbox == GymSection::kNoSandbox)
    base::log_warning("reward.gym: {} runs without a sandbox: it may do all that you may", impl_->asked.file);
}

Gym::~Gym() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
    impl_->changed.notify_all();
  }
  for (const auto& worker : impl_->workers) worker->thread.join();
}

bool Gym::has_reset() const { return impl_->has_reset; }

void Gym::step(GymTurn turn) {
  const std::lock_guard lock(impl_->mutex);
  ++impl_->pending;
  impl_->worker_of(turn.episode).turns.push_back(std::move(turn));
  impl_->changed.notify_all();
}

void Gym::forget(const std::vector<int64_t>& episodes) {
  const std::lock_guard lock(impl_->mutex);
  for (const int64_t episode : episodes) {
    Impl::Worker& worker = impl_->worker_of(episode);
    impl_->pending -=
        static_cast<int64_t>(std::erase_if(worker.turns, [&](const GymTurn& turn) { return turn.episode == episode; }));
    worker.forgotten.push_back(episode);
  }
}

std::vector<GymReply> Gym::take(double seconds) {
  std::unique_lock lock(impl_->mutex);
  if (impl_->pending > 0 && seconds > 0)
    impl_->changed.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !impl_->replies.empty(); });
  impl_->pending -= static_cast<int64_t>(impl_->replies.size());
  return std::exchange(impl_->replies, {});
}

int64_t Gym::pending() const { return impl_->pending; }

}  // namespace collimate::rlhf
