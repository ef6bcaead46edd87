#include "collimate/report/report.h"

#include <fmt/format.h>

#include "collimate/report/heading.h"
#include "collimate/report/html.h"
#include "collimate/report/page.h"
#include "collimate/report/phases.h"
#include "collimate/report/sections.h"

namespace collimate::report {

namespace fs = std::filesystem;

namespace {

std::string draw_absent(const RunData& run) {
  if (run.absent.empty()) return "";
  std::string names;
  for (const std::string& name : run.absent) names += (names.empty() ? "" : ", ") + name;
  return fmt::format(R"(<p class="soft">Not in the run's directory, so not shown: {}.</p>)", escape(names));
}

std::string time_section(const RunData& run) {
  const std::string phases = draw_phases(phase_table(run)), timeline = draw_timeline(run);
  if (phases.empty() && timeline.empty()) return "";
  return "<h2>Where the time went</h2>" + phases + timeline;
}

}  // namespace

std::string draw_warnings(const RunData& run) {
  std::string out;
  if (!run.summary.is_object() || !run.summary.contains("warnings")) return out;
  for (const auto& warning : run.summary.at("warnings"))
    if (warning.is_string())
      out += fmt::format(R"(<p class="warning"><b>Warning:</b> {}</p>)", escape(warning.get<std::string>()));
  return out;
}

std::string render_report(const fs::path& run_directory) {
  const RunData run = read_run(run_directory);
  return html_page(heading_of(run).title(run.name) + " - " + run.name,
                   draw_heading(run) + draw_warnings(run) + draw_tiles(run) + draw_curves(curves_of(run)) +
                       draw_samples(run) + time_section(run) + draw_memory(run) + draw_facts(run) +
                       draw_all_metrics(run) + draw_absent(run));
}

}  // namespace collimate::report
