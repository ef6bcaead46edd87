#include "collimate/report/pipeline_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "collimate/base/error.h"
#include "collimate/base/read_file.h"
#include "collimate/report/change.h"
#include "collimate/report/heading.h"
#include "collimate/report/html.h"
#include "collimate/report/page.h"
#include "collimate/report/sections.h"

namespace collimate::report {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSteps = "steps";

// Reads summary.json. Returns null where there is none, or none of a pipeline.
nlohmann::ordered_json read_pipeline(const fs::path& directory) {
  const fs::path file = directory / "summary.json";
  if (!fs::exists(file)) return {};
  auto summary = nlohmann::ordered_json::parse(base::read_file(file), nullptr, false);
  const bool known =
      summary.is_object() && summary.contains("pipeline") && summary.contains(kSteps) && summary.at(kSteps).is_array();
  return known ? summary : nlohmann::ordered_json();
}

// A StepRun is a step of the summary with its run, which is empty where the step has not begun.
struct StepRun {
  std::string folder, words;
  int64_t rows = 0;
  bool begun = false;
  RunData run;
};

std::vector<StepRun> read_steps(const fs::path& directory, const nlohmann::ordered_json& summary,
                                std::vector<std::string>* unreadable) {
  std::vector<StepRun> steps;
  for (const auto& told : summary.at(kSteps)) {
    StepRun& step = steps.emplace_back();
    step.folder = told.value("folder", "");
    step.words = told.value("words", "");
    step.rows = told.value("rows", int64_t{0});
    step.begun = fs::exists(directory / step.folder / "metrics.jsonl");
    if (step.begun) step.run = read_run(directory / step.folder, unreadable);
  }
  return steps;
}

// Writes "0.5 → 0.71": for a `noisy` number that each iteration has, means (report/change.h), else the first and the
// last value.
std::string change_words(const Series& series, bool noisy, double factor, const char* unit) {
  const std::optional<Change> change = change_over(series.y);
  if (!change) return "";
  const double before = noisy ? change->before : series.y.front(), after = noisy ? change->after : series.y.back();
  return fmt::format("{} → {}{}", short_number(before * factor), short_number(after * factor), unit);
}

// Returns the numbers that say most of a step: held-out ones first, then those of training.
std::string result_of(const RunData& run) {
  struct Number {
    const char *metric, *label, *unit = "";
    double factor = 1;
    bool noisy = false;
  };
  static constexpr Number kNumbers[] = {{"val/loss", "held-out loss"},
                                        {"val/accuracy", "held-out accuracy", " %", 100},
                                        {"val/reward/mean", "held-out reward"},
                                        {"critic/rewards/mean", "reward in training", "", 1, true},
                                        {"actor/reward_kl_penalty", "KL to the reference", " nats per token", 1, true},
                                        {"response_length/mean", "completion length", " tokens", 1, true}};
  std::string out;
  for (const Number& n : kNumbers)
    if (const std::string change = change_words(run.series(n.metric), n.noisy, n.factor, n.unit); !change.empty())
      out += (out.empty() ? "" : "; ") + fmt::format("{} {}", n.label, change);
  return out.empty() ? "no numbers yet" : out;
}

std::string state_of(const StepRun& step) {
  if (!step.begun) return "not begun";
  if (step.run.summary.is_object()) return "done in " + duration(step.run.seconds);
  return step.run.stopped.is_object() ? "stopped" : "not ended";
}

std::string overview(const std::vector<StepRun>& steps) {
  std::string out =
      R"(<div class="scroll" tabindex="0"><table><tr><th scope="col">step</th><th scope="col">what it does</th>)"
      R"(<th scope="col" class="n">rows</th><th scope="col">state</th><th scope="col">first → last</th></tr>)";
  for (const StepRun& step : steps) {
    const std::string name =
        step.begun ? fmt::format(R"(<a href="{0}/report.html">{0}</a>)", escape(step.folder)) : escape(step.folder);
    out += fmt::format(R"(<tr><th scope="row">{}</th><td>{}</td><td class="n">{}</td><td>{}</td><td>{}</td></tr>)",
                       name, escape(step.words), step.rows, escape(state_of(step)),
                       escape(step.begun ? result_of(step.run) : ""));
  }
  return out + "</table></div>";
}

// Returns the curves that come first on the run's own page, and those of KL and length.
Curves few_curves(const RunData& run) {
  constexpr size_t kFirst = 4;
  Curves all = curves_of(run), few;
  for (size_t i = 0; i < all.charts.size(); ++i) {
    const std::string& title = all.charts[i].title;
    if (i < kFirst || title == "KL divergence" || title == "Completion length") few.charts.push_back(all.charts[i]);
  }
  return few;
}

std::string step_section(const StepRun& step) {
  if (!step.begun)
    return fmt::format(R"(<h2>{}: {}</h2><p class="soft">This step has not begun.</p>)", escape(step.folder),
                       escape(step.words));
  const Heading heading = heading_of(step.run);
  std::string out =
      fmt::format(R"(<h2>{}: {}</h2><p>{} · <a href="{}/report.html">its own page, with samples</a></p>)",
                  escape(step.folder), escape(step.words), escape(heading.title(step.folder)), escape(step.folder));
  if (!heading.command.empty())
    out += fmt::format(R"(<p>To try the model: <code>{}</code></p>)", escape(heading.command));
  out += draw_warnings(step.run) + draw_tiles(step.run);
  const Curves curves = few_curves(step.run);
  if (curves.charts.empty()) return out;
  out += R"(<div class="charts" style="margin-top:16px">)";
  for (const Chart& chart : curves.charts) out += draw_chart(chart);
  return out + "</div>";
}

}  // namespace

bool is_pipeline(const fs::path& directory) { return !read_pipeline(directory).is_null(); }

std::string render_pipeline(const fs::path& directory, std::vector<std::string>* unreadable) {
  const nlohmann::ordered_json summary = read_pipeline(directory);
  if (summary.is_null())
    throw base::InputError(base::expectation((directory / "summary.json").string(), "the summary of a pipeline", "none",
                                             "the directory that collimate pipeline wrote"));
  const std::vector<StepRun> steps = read_steps(directory, summary, unreadable);
  const auto done = std::ranges::count_if(steps, [](const StepRun& step) { return step.run.summary.is_object(); });
  double seconds = 0;
  for (const StepRun& step : steps) seconds += step.run.seconds;
  std::string body = fmt::format(
      R"(<h1>Pipeline of {} with reward model {}</h1><p class="soft">{} · {} of {} steps done · {} · split {} by seed {}</p>)",
      escape(summary.value("actor_model", "")), escape(summary.value("reward_model", "")),
      escape(fs::path(directory).lexically_normal().string()), done, steps.size(), duration(seconds),
      escape(summary.value("data_split", "")), summary.value("seed", int64_t{0}));
  body += overview(steps);
  for (const StepRun& step : steps) body += step_section(step);
  return html_page("Pipeline " + directory.filename().string(), body);
}

}  // namespace collimate::report
