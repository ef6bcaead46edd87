#include <fmt/ranges.h>

#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/bench_planner.h"
#include "collimate/cli/quickstart.h"

namespace collimate::cli {

const std::vector<Verb>& benches() {
  static const std::vector<Verb> list = {
      {"quickstart", "train a small model to sort digits, by SFT and then by GRPO, with controls", bench_quickstart},
      {"planner", "compare the planner's predictions with published results", bench_planner}};
  return list;
}

int bench(const Arguments& arguments) {
  const std::string asked = arguments.empty() ? "" : arguments[0];
  if (asked == "--help" || asked == "-h") {
    fmt::print("collimate bench NAME …\n\n");
    for (const Verb& one : benches()) fmt::print("  {:10}  {}\n", one.name, one.summary);
    fmt::print(
        "\ncollimate bench NAME --help lists its options; make bench measures Collimate against other programs.\n");
    return 0;
  }
  std::vector<std::string> known;
  for (const Verb& one : benches()) {
    if (asked == one.name) return one.run({arguments.begin() + 1, arguments.end()});
    known.emplace_back(one.name);
  }
  throw base::InputError(base::expectation("collimate bench", fmt::format("one of {}", fmt::join(known, ", ")),
                                           arguments.empty() ? "nothing" : "\"" + asked + "\"",
                                           "make bench for those against other programs"));
}

}  // namespace collimate::cli
