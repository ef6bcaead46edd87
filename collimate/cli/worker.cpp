#include "collimate/cli/arguments.h"
#include "collimate/flow/executor.h"
#include "collimate/recipe/plugins.h"
#include "collimate/recipe/registry.h"

namespace collimate::cli {

int worker(const Arguments& arguments) {
  CLI::App app{"joins a run as one of its workers; runs start their workers themselves", "worker"};
  std::string address;
  app.add_option("--store", address, "the driver's socket, as fd:N")->required();
  app.add_option_function<std::vector<std::string>>(
         "--plugin",
         [](const std::vector<std::string>& pinned) {
           for (const std::string& file : pinned) recipe::add_pinned_plugin(file);
         },
         "a plugin of the run with its content, as CRC32C:FILE")
      ->take_all();
  if (!parse(app, arguments)) return 0;
  return flow::run_worker(address, recipe::module_registry());
}

}  // namespace collimate::cli
