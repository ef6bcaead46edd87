#include <cstdio>

#include "collimate/base/config.h"
#include "collimate/cli/arguments.h"
#include "collimate/recipe/train.h"

namespace collimate::cli {

int check(const Arguments& arguments) {
  CLI::App app{
      "resolved config, batch arithmetic, data shapes, templates; exit 2 with the reason if it would train wrong",
      "check"};
  std::string config_path;
  std::vector<std::string> sets;
  app.add_option("CONFIG", config_path, "YAML file")->required();
  app.add_option("--set", sets, "override one key: a.b=value")->take_all();
  if (!parse(app, arguments)) return 0;
  const recipe::Config config = recipe::load(config_path, sets);
  fmt::print("{}\n", base::resolved_config(config));
  for (const std::string& line : recipe::check(config)) fmt::print("# {}\n", line);
  return 0;
}

}  // namespace collimate::cli
