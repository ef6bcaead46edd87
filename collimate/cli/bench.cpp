#include "collimate/base/error.h"
#include "collimate/cli/quickstart.h"

namespace collimate::cli {

int bench(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] == "quickstart")
    return bench_quickstart({arguments.begin() + 1, arguments.end()});
  throw base::InputError(base::expectation("collimate bench", "one of quickstart",
                                           arguments.empty() ? "nothing" : "\"" + arguments[0] + "\"",
                                           "make bench for those against other programs"));
}

}  // namespace collimate::cli
