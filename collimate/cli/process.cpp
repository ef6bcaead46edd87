#include "collimate/cli/process.h"

#include <csignal>

namespace collimate::cli {
namespace {

base::StopFlag g_stop;
volatile std::sig_atomic_t g_interrupted = 0;

void on_signal(int number) {
  if (g_stop.requested()) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
  g_stop.request(number);
}

}  // namespace

base::StopFlag& stop_on_signals() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGPIPE, SIG_IGN);
  return g_stop;
}

InterruptScope::InterruptScope() {
  g_interrupted = 0;
  std::signal(SIGINT, [](int) { g_interrupted = 1; });
}

InterruptScope::~InterruptScope() { std::signal(SIGINT, SIG_DFL); }

bool InterruptScope::take() {
  const bool interrupted = g_interrupted != 0;
  g_interrupted = 0;
  return interrupted;
}

}  // namespace collimate::cli
