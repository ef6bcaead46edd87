#include "collimate/report/report.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "collimate/cli/arguments.h"
#include "collimate/host/atomic_file.h"
#include "collimate/report/pipeline_page.h"

namespace collimate::cli {

int report(const Arguments& arguments) {
  CLI::App app{"writes one HTML page of a run or a pipeline, or one that compares several runs", "report"};
  std::vector<std::string> directories;
  std::string output;
  app.add_option("DIR", directories, "the directory of the run or pipeline, or of each run to compare")->required();
  app.add_option(
      "--output", output,
      "the page to write; default: DIR/report.html, of several runs comparison.html in the current directory");
  bool json = false;
  app.add_flag("--json", json, "print one JSON document with the page's path");
  if (!parse(app, arguments)) return 0;
  const bool several = directories.size() > 1;
  if (output.empty())
    output = several ? "comparison.html" : (std::filesystem::path(directories.front()) / "report.html").string();
  const auto page = [&] {
    if (several) return collimate::report::render_comparison({directories.begin(), directories.end()});
    const std::string& directory = directories.front();
    return collimate::report::is_pipeline(directory) ? collimate::report::render_pipeline(directory)
                                                     : collimate::report::render_report(directory);
  };
  host::write_file_atomically(output, page());
  if (json)
    print_json({{"report", output}});
  else
    fmt::print("{}\n", output);
  return 0;
}

}  // namespace collimate::cli
