#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "collimate/cli/arguments.h"
#include "collimate/recipe/summary.h"

namespace collimate::cli {

int version(const Arguments& arguments) {
  CLI::App app{"prints the versions of this program and its libraries, and the processor", "version"};
  bool json = false;
  app.add_flag("--json", json, "print one JSON document");
  if (!parse(app, arguments)) return 0;
  const nlohmann::ordered_json parts = recipe::versions();
  if (json) {
    nlohmann::ordered_json document = {{"version", parts.at("collimate")}};
    document.update(parts);
    print_json(document);
    return 0;
  }
  for (const auto& [name, version] : parts.items()) fmt::print("{} {}\n", name, version.get<std::string>());
  return 0;
}

}  // namespace collimate::cli
