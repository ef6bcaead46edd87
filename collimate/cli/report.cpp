#include "collimate/report/report.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "collimate/cli/arguments.h"
#include "collimate/host/atomic_file.h"

namespace collimate::cli {

int report(const Arguments& arguments) {
  CLI::App app{"writes the HTML page of a run", "report"};
  std::string directory, output;
  app.add_option("DIR", directory, "the run's directory")->required();
  app.add_option("--output", output, "default: DIR/report.html");
  bool json = false;
  app.add_flag("--json", json, "one JSON document: the page's path");
  if (!parse(app, arguments)) return 0;
  if (output.empty()) output = (std::filesystem::path(directory) / "report.html").string();
  host::write_file_atomically(output, collimate::report::render_report(directory));
  if (json)
    print_json({{"report", output}});
  else
    fmt::print("{}\n", output);
  return 0;
}

}  // namespace collimate::cli
