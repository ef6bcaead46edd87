#include "collimate/report/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collimate/base/characters.h"
#include "collimate/base/ticks.h"
#include "collimate/report/chart.h"
#include "collimate/report/html.h"
#include "collimate/report/words.h"

namespace collimate::report {

namespace {

constexpr std::string_view kFamily = "timing_s/";
constexpr std::string_view kTesting = "timing_s/testing";  // of evaluations, which are no part of an iteration
constexpr size_t kMostBars = 60;
constexpr double kPhasesWidth = 1120, kPhasesHeight = 296, kPhasesLeft = 66, kPhasesRight = 1106, kPhasesTop = 28,
                 kPhasesBottom = 252;
constexpr const char* kHint = R"(<p class="soft narrow">Scroll the picture sideways.</p>)";
constexpr double kRow = 26, kNames = 190;  // of the timeline: height of a lane, width of the names
constexpr size_t kMostOfName = 28;         // bytes of a lane's name that fit beside the lane

size_t bar_of(const PhaseTable& table, double step) {
  const double index = (step - table.bar_starts.front()) / table.steps_per_bar;
  return std::min(static_cast<size_t>(std::max(index, 0.0)), table.bar_starts.size() - 1);
}

// Adds `sign` times the series to the phase.
void accumulate(PhaseTimes& phase, const PhaseTable& table, const Series& series, double sign) {
  phase.per_bar.resize(table.bar_starts.size());
  for (size_t i = 0; i < series.x.size(); ++i) {
    phase.per_bar[bar_of(table, series.x[i])] += sign * series.y[i];
    phase.total += sign * series.y[i];
  }
}

// Makes the sums of the bars means over their steps, of which the last bar may have fewer.
void finish(PhaseTimes& phase, const PhaseTable& table, int64_t last_step) {
  phase.total = std::max(phase.total, 0.0);
  for (size_t bar = 0; bar < table.bar_starts.size(); ++bar) {
    const double steps = std::min(table.steps_per_bar, static_cast<double>(last_step) + 1 - table.bar_starts[bar]);
    phase.per_bar[bar] = std::max(phase.per_bar[bar], 0.0) / steps;
  }
}

std::string bars(const PhaseTable& table, double high) {
  std::string out;
  const double pitch = (kPhasesRight - kPhasesLeft) / static_cast<double>(table.bar_starts.size());
  const double width = std::min(pitch * 0.82, 60.0);
  for (size_t bar = 0; bar < table.bar_starts.size(); ++bar) {
    double below = 0;
    for (size_t i = 0; i < table.phases.size(); ++i) {
      const double seconds = table.phases[i].per_bar[bar];
      const double height = seconds / high * (kPhasesBottom - kPhasesTop);
      if (height < 0.05) continue;
      below += height;
      out += fmt::format(
          R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" style="fill:{}"><title>iteration {:.0f}, {}: {}</title></rect>)",
          kPhasesLeft + pitch * (static_cast<double>(bar) + 0.5) - width / 2, kPhasesBottom - below, width, height,
          color(i), table.bar_starts[bar], escape(table.phases[i].name), duration(seconds));
    }
  }
  return out;
}

std::string bar_axes(const PhaseTable& table, double high) {
  std::string out;
  for (const double tick : base::ticks(0, high, 5)) {
    const double y = kPhasesBottom - tick / high * (kPhasesBottom - kPhasesTop);
    out +=
        fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kPhasesLeft, kPhasesRight, y, y);
    out += fmt::format(R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kPhasesLeft - 7, y + 4,
                       short_number(tick));
  }
  const size_t stride = std::max<size_t>(1, table.bar_starts.size() / 12);
  const double pitch = (kPhasesRight - kPhasesLeft) / static_cast<double>(table.bar_starts.size());
  for (size_t bar = 0; bar < table.bar_starts.size(); bar += stride) {
    out +=
        fmt::format(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{:.0f}</text>)",
                    kPhasesLeft + pitch * (static_cast<double>(bar) + 0.5), kPhasesBottom + 18, table.bar_starts[bar]);
  }
  out += fmt::format(R"(<text x="{}" y="{}" text-anchor="middle">iteration</text>)", (kPhasesLeft + kPhasesRight) / 2,
                     kPhasesBottom + 38);
  out += R"(<text class="unit" x="2" y="13">seconds</text>)";
  return out;
}

std::string totals(const PhaseTable& table) {
  std::string out =
      R"(<div class="scroll" tabindex="0"><table><tr><th scope="col">phase</th><th class="n" scope="col">total</th>)"
      R"(<th class="n" scope="col">share</th></tr>)";
  for (size_t i = 0; i < table.phases.size(); ++i) {
    const PhaseTimes& phase = table.phases[i];
    out += fmt::format(R"(<tr><td><span class="swatch" style="background:{}"></span>{}</td><td class="n">{}</td>)"
                       R"(<td class="n">{:.1f} %</td></tr>)",
                       color(i), escape(phase.name), duration(phase.total), 100 * phase.total / table.total);
  }
  return out + fmt::format(R"(<tr><th>whole time</th><th class="n">{}</th><th></th></tr></table></div>)",
                           duration(table.total));
}

// Returns the lanes of the events, which are sorted by worker and thread.
std::vector<std::string> lanes_of(const std::vector<TraceEvent>& events) {
  std::vector<std::string> lanes;
  for (const TraceEvent& event : events) {
    if (lanes.empty() || lanes.back() != event.lane) lanes.push_back(event.lane);
  }
  return lanes;
}

std::vector<std::string> names_of(const std::vector<TraceEvent>& events) {
  std::vector<std::string> names;
  for (const TraceEvent& event : events) {
    if (std::find(names.begin(), names.end(), event.name) == names.end()) names.push_back(event.name);
  }
  return names;
}

std::string timeline_axes(const std::vector<std::string>& lanes, double end, double bottom) {
  std::string out;
  for (const double tick : base::ticks(0, end, 8)) {
    const double x = kNames + tick / end * (kPhasesRight - kNames);
    out += fmt::format(R"(<line class="grid" x1="{:.1f}" x2="{:.1f}" y1="4" y2="{}"/>)", x, x, bottom);
    out += fmt::format(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", x, bottom + 16, short_number(tick));
  }
  for (size_t i = 0; i < lanes.size(); ++i) {
    out += fmt::format(R"(<text x="{}" y="{:.1f}" text-anchor="end">{}<title>{}</title></text>)", kNames - 8,
                       8 + kRow * (static_cast<double>(i) + 0.5) + 4, escape(base::beginning_of(lanes[i], kMostOfName)),
                       escape(lanes[i]));
  }
  return out;
}

std::string timeline_block(const TraceEvent& event, const std::vector<std::string>& lanes,
                           const std::vector<std::string>& names, double end) {
  const auto index = [](const std::vector<std::string>& list, const std::string& value) {
    return static_cast<size_t>(std::find(list.begin(), list.end(), value) - list.begin());
  };
  const double scale = (kPhasesRight - kNames) / end;
  return fmt::format(
      R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{}" rx="2" style="fill:{}"><title>{}: {}</title></rect>)",
      kNames + event.begin_seconds * scale, 8 + kRow * static_cast<double>(index(lanes, event.lane)) + 3,
      std::max(1.0, (event.end_seconds - event.begin_seconds) * scale), kRow - 6, color(index(names, event.name)),
      escape(event.name), duration(event.end_seconds - event.begin_seconds));
}

}  // namespace

PhaseTable phase_table(const RunData& run) {
  PhaseTable table;
  const double steps = static_cast<double>(run.last_step - run.first_step + 1);
  table.steps_per_bar = std::max(1.0, std::ceil(steps / kMostBars));
  for (double step = static_cast<double>(run.first_step); step <= static_cast<double>(run.last_step);
       step += table.steps_per_bar) {
    table.bar_starts.push_back(step);
  }
  const Series& whole = run.series("timing_s/step");
  PhaseTimes other{"the rest of each iteration", {}, 0};
  accumulate(other, table, whole, 1);
  for (const auto& [name, series] : run.metrics) {
    if (!name.starts_with(kFamily) || &series == &whole) continue;
    PhaseTimes phase{phase_words(name.substr(kFamily.size())), {}, 0};
    accumulate(phase, table, series, 1);
    if (!whole.empty() && name != kTesting) accumulate(other, table, series, -1);
    finish(phase, table, run.last_step);
    table.phases.push_back(std::move(phase));
  }
  std::sort(table.phases.begin(), table.phases.end(),
            [](const PhaseTimes& a, const PhaseTimes& b) { return a.total > b.total; });
  finish(other, table, run.last_step);
  if (other.total > 0) table.phases.push_back(std::move(other));
  for (const PhaseTimes& phase : table.phases) table.total += phase.total;
  if (const double outside = run.seconds - table.total; !whole.empty() && outside > 0) {
    table.phases.push_back(
        {"outside of the iterations: start, checkpoints, end", std::vector<double>(table.bar_starts.size()), outside});
    table.total += outside;
  }
  return table;
}

std::string draw_phases(const PhaseTable& table) {
  if (table.total <= 0) return "";
  double high = 0;
  for (size_t bar = 0; bar < table.bar_starts.size(); ++bar) {
    double sum = 0;
    for (const PhaseTimes& phase : table.phases) sum += phase.per_bar[bar];
    high = std::max(high, sum * 1.04);
  }
  const std::string unit = table.steps_per_bar > 1
                               ? fmt::format("seconds per iteration, mean of {:.0f} a bar", table.steps_per_bar)
                               : "seconds of each iteration";
  return fmt::format(
      R"(<figure class="wide bars"><h3>Time by phase</h3><p class="soft">{}</p>{})"
      R"(<div class="scroll" tabindex="0"><svg viewBox="0 0 {} {}" role="img" )"
      R"(aria-label="Stacked bars of the time by phase; the table below has the totals.">{}{}</svg></div>{}</figure>)",
      unit, kHint, kPhasesWidth, kPhasesHeight, bar_axes(table, high), bars(table, high), totals(table));
}

std::string draw_timeline(const RunData& run) {
  double end = 0;
  for (const TraceEvent& event : run.trace) end = std::max(end, event.end_seconds);
  if (end <= 0) return "";
  const std::vector<std::string> lanes = lanes_of(run.trace);
  const std::vector<std::string> names = names_of(run.trace);
  const double bottom = 8 + kRow * static_cast<double>(lanes.size());
  std::string body = timeline_axes(lanes, end, bottom);
  for (const TraceEvent& event : run.trace) body += timeline_block(event, lanes, names, end);
  std::string legend = R"(<ul class="legend">)";
  for (size_t i = 0; i < names.size(); ++i) {
    legend +=
        fmt::format(R"(<li><span class="swatch" style="background:{}"></span>{}</li>)", color(i), escape(names[i]));
  }
  const std::string which = run.trace_iteration < 0 ? "" : fmt::format(" in iteration {}", run.trace_iteration);
  return fmt::format(
      R"(<figure class="wide"><h3>What ran when{}</h3><p class="soft">A row for each device or host worker, )"
      R"(a block for each call of a model's function.</p>{}{}</ul><div class="scroll" tabindex="0">)"
      R"(<svg viewBox="0 0 {} {}" role="img" aria-label="One row a worker, one block a call.">{})"
      R"(<text x="{}" y="{}" text-anchor="middle">seconds</text></svg></div></figure>)",
      which, kHint, legend, kPhasesWidth, bottom + 40, body, (kNames + kPhasesRight) / 2, bottom + 34);
}

}  // namespace collimate::report
