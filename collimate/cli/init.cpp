#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/hub_cache.h"
#include "collimate/recipe/starter.h"

namespace collimate::cli {
namespace {

// Returns whether standard output goes to this file, as in `collimate init sft > sft.yaml`.
bool is_standard_output(const std::string& path) {
  struct stat file {};
  struct stat output {};
  return ::stat(path.c_str(), &file) == 0 && ::fstat(STDOUT_FILENO, &output) == 0 && file.st_dev == output.st_dev &&
         file.st_ino == output.st_ino;
}

}  // namespace

int init(const Arguments& arguments) {
  CLI::App app{"writes a commented config to begin with", "init"};
  std::string recipe, model = "MODEL", data = "DATA.jsonl", output;
  app.add_option("RECIPE", recipe, "the recipe; collimate help recipes lists them")->required();
  const auto* model_option = app.add_option("MODEL", model, "the model: a directory, or a name on a hub");
  const auto* data_option = app.add_option("DATA", data, "the data file");
  app.add_option("--output", output, "the file to write, or - for standard output; default: RECIPE.yaml");
  if (!parse(app, arguments)) return 0;
  const std::string text = recipe::starter(recipe, model, data, output == "-" ? "" : output);
  if (output == "-") {
    fmt::print("{}", text);
    return 0;
  }
  if (output.empty()) output = recipe + ".yaml";
  const bool printed = is_standard_output(output);
  if (printed || (std::filesystem::exists(output) && !std::filesystem::is_empty(output)))
    throw base::InputError(base::expectation(
        "--output", "a file that is not there yet", output,
        printed ? fmt::format("leaving out `> {}`, as init writes the file itself", output) : "another --output"));
  host::write_file_atomically(output, text);
  if (model_option->count() > 0 && !std::filesystem::exists(host::model_directory(model)))
    fmt::print(stderr, "warning: {} names the model {}, which is not there yet\n", output, model);
  if (data_option->count() > 0 && data.find('*') == std::string::npos && !std::filesystem::exists(data))
    fmt::print(stderr, "warning: {} names the data {}, which is not there yet\n", output, data);
  fmt::print("{}; next: collimate check {}\n", output, output);
  return 0;
}

}  // namespace collimate::cli
