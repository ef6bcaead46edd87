#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/bench_planner.h"
#include "collimate/cli/quickstart.h"

namespace collimate::cli {
namespace {

constexpr const char* kHelp =
    "collimate bench NAME …\n\n"
    "  quickstart  train a small model to sort digits, by SFT and then by GRPO, with controls\n"
    "  planner     compare the planner's predictions with published results\n\n"
    "collimate bench NAME --help lists its options. make bench measures Collimate against other programs.\n";

}  // namespace

int bench(const Arguments& arguments) {
  if (!arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h")) {
    fmt::print("{}", kHelp);
    return 0;
  }
  if (!arguments.empty() && arguments[0] == "quickstart")
    return bench_quickstart({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == "planner") return bench_planner({arguments.begin() + 1, arguments.end()});
  throw base::InputError(base::expectation("collimate bench", "one of quickstart, planner",
                                           arguments.empty() ? "nothing" : "\"" + arguments[0] + "\"",
                                           "make bench for those against other programs"));
}

}  // namespace collimate::cli
