#include "collimate/cli/bench_planner.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"

namespace collimate::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScript = "bench/published/report.py";

// Returns the checkout that the program lies in, which has the script that reads published results. Throws InputError
// for a program outside of a checkout.
fs::path checkout_of(const fs::path& program) {
  for (fs::path at = program.parent_path(); at != at.root_path(); at = at.parent_path())
    if (fs::exists(at / kScript)) return at;
  throw base::InputError(base::expectation("bench planner", fmt::format("{} in a directory above the program", kScript),
                                           program.string(), "the program that a checkout has in build/release/bin"));
}

[[noreturn]] void become(std::vector<std::string> command) {
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  throw base::RunError(base::expectation("bench planner", "Python", std::strerror(errno), "tools/setup.sh"));
}

}  // namespace

int bench_planner(const Arguments& arguments) {
  CLI::App app{"published results against the planner's cost model, row by row", "bench planner"};
  std::string path;
  std::vector<std::string> sets, devices, fitted_backends;
  bool json = false, held_out = false, fit = false, fit_rows = false;
  app.add_option("--results", path, "comma-separated rows of published results")->required();
  app.add_option("--set", sets, "CONSTANT=VALUE for every back end")->take_all();
  app.add_option("--device", devices, "KIND.KEY=NUMBER of the device table, or NEW=KIND, as for plan")->take_all();
  app.add_flag("--held-out", held_out, "also fits again without one paper or one size at a time (minutes)");
  app.add_flag("--fit", fit, "also fits every back end's constants to the rows that may be fitted (minutes)");
  app.add_flag("--fit-rows", fit_rows, "also lists the rows that a fit takes");
  app.add_option("--fit-backend", fitted_backends, "fits only these back ends")->take_all();
  app.add_flag("--json", json, "one JSON document");
  if (!parse(app, arguments)) return 0;
  const fs::path program = fs::read_symlink("/proc/self/exe"), checkout = checkout_of(program);
  const fs::path python = checkout / ".venv/bin/python";
  std::vector<std::string> command = {fs::exists(python) ? python.string() : "python3", (checkout / kScript).string(),
                                      "--program", (program.parent_path() / "bench_published").string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  become(std::move(command));
}

}  // namespace collimate::cli
