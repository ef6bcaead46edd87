#include "collimate/cli/arguments.h"

#include <algorithm>

#include "collimate/base/error.h"

namespace collimate::cli {

bool parse(CLI::App& app, const Arguments& arguments) {
  Arguments reversed = arguments;
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return false;
  } catch (const CLI::ParseError& error) {
    throw base::InputError(base::expectation("collimate " + app.get_name(), "arguments that it knows", error.what(),
                                             "collimate " + app.get_name() + " --help"));
  }
  return true;
}

}  // namespace collimate::cli
