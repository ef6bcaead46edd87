#include "collimate/report/report.h"

#include <fmt/format.h>

#include "collimate/base/error.h"
#include "collimate/report/html.h"
#include "collimate/report/phases.h"
#include "collimate/report/sections.h"

namespace collimate::report {

namespace fs = std::filesystem;

namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return escape(out);
}

std::string draw_absent(const RunData& run) {
  if (run.absent.empty()) return "";
  return fmt::format(R"(<p class="soft">Not in the run's directory, so not shown: {}.</p>)", joined(run.absent));
}

// The run has said these of itself: see recipe/learning_watch.h.
std::string draw_warnings(const RunData& run) {
  std::string out;
  if (!run.summary.is_object() || !run.summary.contains("warnings")) return out;
  for (const auto& warning : run.summary.at("warnings"))
    if (warning.is_string())
      out += fmt::format(R"(<p class="warning"><b>Warning:</b> {}</p>)", escape(warning.get<std::string>()));
  return out;
}

std::string curves_section(const Curves& curves) {
  std::string out = R"(<h2>Curves</h2><div class="charts">)";
  for (const Chart& chart : curves.charts) out += draw_chart(chart);
  out += "</div>";
  if (!curves.zeros.empty()) {
    out += fmt::format(R"(<p class="soft">Below 1e-7 at every step, so not drawn: {}.</p>)", joined(curves.zeros));
  }
  return out;
}

std::string time_section(const RunData& run) {
  const std::string phases = draw_phases(phase_table(run)), timeline = draw_timeline(run);
  if (phases.empty() && timeline.empty()) return "";
  return "<h2>Where the time went</h2>" + phases + timeline;
}

}  // namespace

std::string render_report(const fs::path& run_directory) {
  const RunData run = read_run(run_directory);
  const std::string name = escape(run.name);
  std::string page = page_head(name) + fmt::format(R"(<h1>{}</h1><p class="soft">Collimate run, steps {} to {}</p>)",
                                                   name, run.first_step, run.last_step);
  page += draw_warnings(run) + draw_tiles(run);
  page += curves_section(curves_of(run)) + time_section(run) + draw_samples(run) + draw_memory(run) + draw_facts(run) +
          draw_all_metrics(run) + draw_absent(run);
  page += fmt::format("</main><script>{}</script></body></html>\n", page_script());
  return page;
}

}  // namespace collimate::report
