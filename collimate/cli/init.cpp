#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"
#include "collimate/host/atomic_file.h"
#include "collimate/recipe/starter.h"

namespace collimate::cli {

int init(const Arguments& arguments) {
  CLI::App app{"writes a commented config to begin with", "init"};
  std::string recipe, model = "MODEL", data = "DATA.jsonl", output;
  app.add_option("RECIPE", recipe, "the recipe; collimate help recipes lists them")->required();
  app.add_option("MODEL", model, "the model: a directory, or a name on a hub");
  const auto* data_option = app.add_option("DATA", data, "the data file");
  app.add_option("--output", output, "the file to write, or - for standard output; default: RECIPE.yaml");
  if (!parse(app, arguments)) return 0;
  const std::string text = recipe::starter(recipe, model, data, output == "-" ? "" : output);
  if (output == "-") {
    fmt::print("{}", text);
    return 0;
  }
  if (output.empty()) output = recipe + ".yaml";
  if (std::filesystem::exists(output))
    throw base::InputError(base::expectation("--output", "a file that is not there yet", output, "another --output"));
  host::write_file_atomically(output, text);
  if (data_option->count() > 0 && !std::filesystem::exists(data))
    fmt::print(stderr, "warning: {} names the data {}, which is not there yet\n", output, data);
  fmt::print("{}; next: collimate check {}\n", output, output);
  return 0;
}

}  // namespace collimate::cli
