#include "collimate/cli/check.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/auto_placement.h"
#include "collimate/recipe/check.h"

namespace collimate::cli {

void show_check(const recipe::Config& config, bool json) {
  const recipe::Findings found = recipe::check(config);
  if (json) {
    nlohmann::ordered_json document = {{"config", base::to_json(config.section_value())},
                                       {"config_hash", base::config_hash(config)}};
    document.update(found.facts);
    document["notes"] = found.lines;
    document["problems"] = found.problems;
    print_json(document);
  } else {
    fmt::print("{}\n", found.config);
    for (const std::string& line : found.lines) fmt::print("# {}\n", line);
    std::fflush(stdout);
  }
  recipe::refuse(found.problems);
}

int check(const Arguments& arguments) {
  CLI::App app{
      "resolved config, batch arithmetic, data shapes, templates and masks; exit 2 with the reasons if it would train "
      "wrong",
      "check"};
  std::string config_path;
  std::vector<std::string> sets;
  bool json = false;
  app.add_option("CONFIG", config_path, "YAML file")->required();
  app.add_option("--set", sets, "override one key: a.b=value")->take_all();
  app.add_flag("--json", json, "one JSON document");
  if (!parse(app, arguments)) return 0;
  recipe::Config config = recipe::load(config_path, sets);
  choose_placement(config, config_path, sets, "");
  show_check(config, json);
  return 0;
}

}  // namespace collimate::cli
