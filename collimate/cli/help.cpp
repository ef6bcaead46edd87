#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"
#include "collimate/host/cpu.h"
#include "collimate/recipe/config.h"

namespace collimate::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> list = {
      {"train", "train what CONFIG.yaml says", train},
      {"check", "show the resolved config, batch arithmetic and data, and what is wrong with them", check},
      {"generate", "complete prompts with a model", generate},
      {"report", "write the HTML page of a run", report},
      {"bench", "quickstart and other measured runs", bench},
      {"worker", "join a run as a worker", worker},
      {"version", "print the version", version},
      {"help", "this text; with KEY, the options at or below that config key", help}};
  return list;
}

int help(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] == "--reference") {
    fmt::print("{}", base::config_reference(recipe::Config()));
    return 0;
  }
  if (!arguments.empty()) {
    const std::string text = base::config_help(recipe::Config(), arguments[0]);
    if (text.empty())
      throw base::InputError(
          base::expectation("collimate help", "a config key", "\"" + arguments[0] + "\"", "collimate help train"));
    fmt::print("{}", text);
    return 0;
  }
  fmt::print("collimate VERB …\n\n");
  for (const Verb& verb : verbs()) fmt::print("  {:10} {}\n", verb.name, verb.summary);
  fmt::print("\ncollimate VERB --help lists a verb's options; collimate help KEY explains a config key.\n");
  return 0;
}

int version(const Arguments& arguments) {
  CLI::App app{"prints the version", "version"};
  bool json = false;
  app.add_flag("--json", json, "one JSON document");
  if (!parse(app, arguments)) return 0;
  if (json)
    fmt::print("{}\n", nlohmann::json{{"version", COLLIMATE_VERSION}, {"processor", host::cpu_model()}}.dump());
  else
    fmt::print("collimate {}\n", COLLIMATE_VERSION);
  return 0;
}

}  // namespace collimate::cli
