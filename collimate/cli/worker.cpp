#include "collimate/cli/arguments.h"
#include "collimate/flow/executor.h"
#include "collimate/recipe/registry.h"

namespace collimate::cli {

int worker(const Arguments& arguments) {
  CLI::App app{"joins a run as one of its workers; runs start their workers themselves", "worker"};
  std::string address;
  app.add_option("--store", address, "the driver's socket, as fd:N")->required();
  add_plugin_option(app);
  if (!parse(app, arguments)) return 0;
  return flow::run_worker(address, recipe::module_registry());
}

}  // namespace collimate::cli
