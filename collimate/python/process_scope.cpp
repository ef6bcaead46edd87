#include "collimate/python/process_scope.h"

#include <array>
#include <atomic>
#include <csignal>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/immovable.h"
#include "collimate/tensor/aten_allocator.h"
#include "collimate/tensor/aten_threads.h"

namespace collimate::python {
namespace {

constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};

std::atomic<bool> g_busy{false};
std::atomic<int> g_on_main_thread{0};
std::atomic<CallersCode::Interrupt> g_interrupt{nullptr};

}  // namespace

struct ProcessScope::Held {
  struct Turn : private base::Immovable {
    Turn() {
      if (g_busy.exchange(true))
        throw base::RunError(base::expectation("collimate", "one call at a time in a process",
                                               "one while another is going on", "a process of its own for the second"));
    }
    ~Turn() { g_busy.store(false); }
  };

  Turn turn;  // declared first, so that it throws before the others change the process of another call
  tensor::AtenAllocatorScope allocator;
  tensor::OneAtenThread threads;
};

ProcessScope::ProcessScope() : held_(std::make_unique<Held>()) {}
ProcessScope::~ProcessScope() = default;

struct SignalScope::Saved {
  // Signals set these two: the first one `stop`, a further one `again` too.
  base::StopFlag stop;
  std::atomic<bool> again{false};
  std::array<struct sigaction, kSignals.size()> handlers{};
};

std::atomic<SignalScope::Saved*> SignalScope::living_{nullptr};

void SignalScope::on_signal(int number) {
  Saved* saved = living_.load();
  if (saved == nullptr) return;
  if (saved->stop.requested()) saved->again.store(true);
  saved->stop.request(number);
  if (g_on_main_thread.load() > 0) g_interrupt.load()(number);
}

SignalScope::SignalScope(std::function<void()> on_stop)
    : saved_(std::make_unique<Saved>()), on_stop_(std::move(on_stop)) {
  living_.store(saved_.get());
  struct sigaction ours {};
  ours.sa_handler = on_signal;
  ours.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &ours, &saved_->handlers[i]);
}

SignalScope::~SignalScope() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &saved_->handlers[i], nullptr);
  living_.store(nullptr);
}

base::StopFlag& SignalScope::stop() { return saved_->stop; }

void SignalScope::stop_with(const std::string& message) const {
  if (on_stop_) on_stop_();
  throw base::StoppedError(message);
}

void SignalScope::throw_if_repeated() const {
  if (saved_->again.load()) stop_with("[run] stopped at once; nothing since the last checkpoint is saved");
}

void SignalScope::throw_if_asked(const char* call) const {
  if (saved_->stop.requested()) stop_with(fmt::format("[{}] stopped; nothing of it is kept", call));
}

CallersCode::CallersCode(bool on_main_thread, Interrupt interrupt) : counted_(on_main_thread) {
  g_interrupt.store(interrupt);
  g_on_main_thread += counted_ ? 1 : 0;
}
CallersCode::~CallersCode() { g_on_main_thread -= counted_ ? 1 : 0; }

}  // namespace collimate::python
