#include "collimate/cli/arguments.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

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

CLI::Validator at_least(double minimum) {
  const std::string wanted = fmt::format("{} or more", minimum);
  return CLI::Validator(
      [minimum, wanted](const std::string& text) {
        double value = 0;
        const bool number = CLI::detail::lexical_cast(text, value);
        return number && value >= minimum ? std::string() : fmt::format("{}, not {}", wanted, text);
      },
      wanted);
}

void print_json(const nlohmann::ordered_json& document) {
  fmt::print("{}\n", document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
  std::fflush(stdout);
}

}  // namespace collimate::cli
