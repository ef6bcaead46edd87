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

std::string warning_line(const char* about, const std::string& text) {
  return fmt::format(R"(<p class="warning"><b>{}:</b> {}</p>)", about, escape(text));
}

// Describes an entry of summary.json's left_out: "data.train: 2 of 120 rows left out (data.bad_rows: drop); the first:
// …".
std::string left_out_words(const nlohmann::ordered_json& rows) {
  return fmt::format("{}: {} of {} rows {}", rows.value("data", ""), rows.value("rows", int64_t{0}),
                     rows.value("of", int64_t{0}), rows.value("what", "") + rows.value("rest", ""));
}

// Describes stopped.json by the exit code of the command: "A guard stopped this run after iteration 12".
std::string stopped_words(const nlohmann::ordered_json& stopped) {
  constexpr int kBySignal = 3, kByGuard = 4;
  const int code = stopped.value("exit_code", 1);
  const char* by = code == kBySignal ? "A signal stopped" : code == kByGuard ? "A guard stopped" : "An error ended";
  const auto done = stopped.value("iterations", int64_t{0});
  return fmt::format("{} this run {}", by,
                     done > 0 ? fmt::format("after iteration {}", done) : "before an iteration was finished");
}

}  // namespace

std::string draw_warnings(const RunData& run) {
  const nlohmann::ordered_json& told = run.summary.is_null() ? run.stopped : run.summary;
  std::string out;
  if (!told.is_object()) return out;
  if (const std::string cause = told.value("cause", ""); !cause.empty())
    out += warning_line(stopped_words(told).c_str(), cause);
  for (const auto& warning : told.value("warnings", nlohmann::ordered_json::array()))
    if (warning.is_string()) out += warning_line("Warning", warning.get<std::string>());
  if (const std::string how = told.value("diverged", ""); !how.empty())
    out += warning_line("This run has diverged", how);
  for (const auto& rows : told.value("left_out", nlohmann::ordered_json::array()))
    if (rows.is_object()) out += warning_line("Data", left_out_words(rows));
  return out;
}

std::string render_report(const fs::path& run_directory, std::vector<std::string>* unreadable) {
  const RunData run = read_run(run_directory, unreadable);
  return html_page(heading_of(run).title(run.name) + " - " + run.name,
                   draw_heading(run) + draw_warnings(run) + draw_tiles(run) + draw_curves(curves_of(run)) +
                       draw_samples(run) + time_section(run) + draw_memory(run) + draw_facts(run) +
                       draw_all_metrics(run) + draw_absent(run));
}

}  // namespace collimate::report
