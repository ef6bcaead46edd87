#include "collimate/cli/process.h"

#include <csignal>

namespace collimate::cli {
namespace {

base::StopFlag g_stop;

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

}  // namespace collimate::cli
