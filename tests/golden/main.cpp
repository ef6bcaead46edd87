// collimate-goldens [DIR]: replays every golden in DIR through our model, losses, learner and optimizer.
// Exit status 1 when one is outside its tolerance or a kind that must be there is unknown, 2 when DIR has no goldens.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "collimate/base/error.h"
#include "tests/golden/replay.h"

namespace {

std::string default_folder() {
  const char* shared = std::getenv("COLLIMATE_SHARED");
  return std::string(shared != nullptr ? shared : COLLIMATE_SOURCE_DIR "/../shared") + "/goldens";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace collimate;
  at::set_num_threads(1);
  try {
    const std::string folder = argc > 1 ? argv[1] : default_folder();
    const auto print = [](const golden::Outcome& outcome) {
      fmt::print("{}\n", golden::line_of(outcome));
      std::fflush(stdout);
    };
    const golden::Totals totals = golden::totals_of(golden::replay_folder(folder, print));
    fmt::print("{}\n", golden::line_of(totals));
    return totals.failed ? 1 : 0;
  } catch (const base::InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
