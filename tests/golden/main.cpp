// collimate-goldens [DIR]: replays every golden in DIR through our model, losses, learner and optimizer. DIR is
// $COLLIMATE_SHARED/goldens where none is given; models that are not beside DIR are $COLLIMATE_SHARED/data/models.
// Exit status 1 when one is outside its tolerance or a kind that must be there is unknown, 2 when DIR has no goldens.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "collimate/base/error.h"
#include "tests/golden/replay.h"

namespace {

std::string shared_folder() {
  const char* shared = std::getenv("COLLIMATE_SHARED");
  return shared != nullptr ? shared : COLLIMATE_SOURCE_DIR "/../shared";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace collimate;
  at::set_num_threads(1);
  try {
    const std::string folder = argc > 1 ? argv[1] : shared_folder() + "/goldens";
    const auto print = [](const golden::Outcome& outcome) {
      fmt::print("{}\n", golden::line_of(outcome));
      std::fflush(stdout);
    };
    const golden::Totals totals =
        golden::totals_of(golden::replay_folder(folder, print, shared_folder() + "/data/models"));
    fmt::print("{}\n", golden::line_of(totals));
    return totals.failed ? 1 : 0;
  } catch (const base::InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
