#include "collimate/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "collimate/base/ticks.h"
#include "collimate/report/html.h"

namespace collimate::report {

namespace {

constexpr double kWidth = 560, kHeight = 284, kLeft = 86, kRight = 546, kTop = 28, kBottom = 240;
constexpr size_t kSmoothAbove = 60, kMostPoints = 1500;
constexpr const char* kDashes[] = {"", "6 3", "2 3", "9 3 2 3", "12 4"};

size_t smooth_width(size_t points) { return points / 40 * 2 + 1; }  // odd: as many steps before as after

// Returns whether a curve has many points that go up and down: their way is longer than three times their range.
bool is_noisy(const Series& series) {
  if (series.y.size() <= kSmoothAbove) return false;
  double way = 0;
  for (size_t i = 1; i < series.y.size(); ++i) way += std::fabs(series.y[i] - series.y[i - 1]);
  const auto [low, high] = std::minmax_element(series.y.begin(), series.y.end());
  return way > 3 * (*high - *low);
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// A Frame maps values to places in the picture.
struct Frame {
  Range x;
  Range y;
  bool log = false;

  double to_x(double step) const { return kLeft + (step - x.low) / (x.high - x.low) * (kRight - kLeft); }
  double to_y(double value) const {
    const double part = log ? std::log(value / y.low) / std::log(y.high / y.low) : (value - y.low) / (y.high - y.low);
    return kBottom - part * (kBottom - kTop);
  }
};

// Leaves out values that a logarithmic axis cannot show and, of a very long run, all but every n-th point and the last.
Series drawable(const Series& series, Scale scale) {
  const size_t stride = (series.x.size() + kMostPoints - 1) / kMostPoints;
  Series out;
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (i % stride != 0 && i + 1 != series.x.size()) continue;
    if (scale == Scale::kLog && series.y[i] <= 0) continue;
    out.x.push_back(series.x[i]);
    out.y.push_back(series.y[i]);
  }
  return out;
}

void widen(Range& range, double by) {
  if (range.low > range.high) range = {0, 1};
  if (range.low == range.high) {
    range.low -= by;
    range.high += by;
  }
}

Frame frame_of(const std::vector<ChartLine>& lines, Scale scale) {
  Frame frame;
  frame.log = scale == Scale::kLog;
  for (const ChartLine& line : lines) {
    for (const double x : line.series.x) frame.x.include(x);
    for (const double y : line.series.y) frame.y.include(y);
  }
  widen(frame.x, 0.5);
  if (frame.log) {
    if (frame.y.low > frame.y.high) frame.y = {1e-8, 1};
    frame.y.low = std::pow(10, std::floor(std::log10(frame.y.low)));
    frame.y.high = std::pow(10, std::ceil(std::log10(frame.y.high) + 1e-9));
    return frame;
  }
  const bool fraction = scale == Scale::kPercent && frame.y.low >= 0 && frame.y.high <= 1;
  if (fraction || (frame.y.low >= 0 && frame.y.low < 0.5 * frame.y.high)) frame.y.low = 0;
  widen(frame.y, frame.y.low == 0 ? 1 : std::fabs(frame.y.low) * 0.1);
  const double room = 0.05 * (frame.y.high - frame.y.low);
  if (frame.y.low != 0) frame.y.low -= room;
  frame.y.high += room;
  if (fraction && frame.y.high > 0.5) frame.y.high = 1;
  return frame;
}

std::string axes(const Frame& frame, const Chart& chart) {
  std::string out;
  const bool percent = chart.scale == Scale::kPercent;
  const std::vector<double> levels =
      frame.log ? log_ticks(frame.y.low, frame.y.high) : base::ticks(frame.y.low, frame.y.high, 5);
  const std::vector<std::string> labels = tick_labels(levels, percent);
  for (size_t i = 0; i < levels.size(); ++i) {
    const double y = frame.to_y(levels[i]);
    const std::string label = frame.log ? fmt::format("{:.0e}", levels[i]) : labels[i];
    out += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kLeft, kRight, y, y);
    out += fmt::format(R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 7, y + 4, label);
  }
  for (const double tick : base::ticks(frame.x.low, frame.x.high, 7)) {
    if (tick != std::floor(tick)) continue;
    out += fmt::format(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", frame.to_x(tick), kBottom + 18,
                       short_number(tick));
  }
  out += fmt::format(R"(<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>)", kLeft, kRight, kBottom, kBottom);
  out +=
      fmt::format(R"(<text x="{}" y="{}" text-anchor="middle">iteration</text>)", (kLeft + kRight) / 2, kBottom + 36);
  out += fmt::format(R"(<text class="unit" x="2" y="13">{}</text>)", escape(chart.unit));
  return out;
}

std::string polyline(const Frame& frame, const std::vector<double>& xs, const std::vector<double>& ys, size_t index,
                     const char* more) {
  std::string points;
  for (size_t i = 0; i < xs.size(); ++i) points += fmt::format("{:.1f},{:.1f} ", frame.to_x(xs[i]), frame.to_y(ys[i]));
  return fmt::format(R"(<polyline class="curve{}" style="stroke:{}" stroke-dasharray="{}" points="{}"/>)", more,
                     color(index), *more ? "" : kDashes[index % std::size(kDashes)], points);
}

std::string curve(const Frame& frame, const Series& series, size_t index) {
  const size_t count = series.x.size();
  if (is_noisy(series)) {
    return polyline(frame, series.x, series.y, index, " raw") +
           polyline(frame, series.x, running_mean(series.y, smooth_width(count)), index, "");
  }
  std::string out = polyline(frame, series.x, series.y, index, "");
  if (count > 25) return out;
  for (size_t i = 0; i < count; ++i) {
    out += fmt::format(R"(<circle r="3" cx="{:.1f}" cy="{:.1f}" style="fill:{}"/>)", frame.to_x(series.x[i]),
                       frame.to_y(series.y[i]), color(index));
  }
  return out;
}

std::string legend(const std::vector<ChartLine>& lines) {
  std::string out = R"(<ul class="legend">)";
  size_t width = 0;
  for (const ChartLine& line : lines) {
    if (is_noisy(line.series)) width = std::max(width, smooth_width(line.series.x.size()));
    out += fmt::format(
        R"(<li><svg viewBox="0 0 26 10" aria-hidden="true"><line x1="0" x2="26" y1="5" y2="5" stroke-width="2.5" )"
        R"(style="stroke:{}" stroke-dasharray="{}"/></svg>{}</li>)",
        color(line.style), kDashes[line.style % std::size(kDashes)], escape(line.label));
  }
  if (width) out += fmt::format("<li>faint: each iteration; bold: running mean of {}</li>", width);
  return out + "</ul>";
}

// Writes what the script needs to show values: positions in the picture's units, and the points themselves.
std::string points_json(const Frame& frame, const std::vector<ChartLine>& lines, bool percent) {
  nlohmann::ordered_json data{{"width", kWidth},    {"left", kLeft},        {"right", kRight},
                              {"low", frame.x.low}, {"high", frame.x.high}, {"lines", nlohmann::ordered_json::array()}};
  for (const ChartLine& line : lines) {
    std::vector<std::string> values;
    for (const double value : line.series.y) values.push_back(short_number(value, percent));
    data["lines"].push_back({{"label", line.label}, {"x", line.series.x}, {"y", values}});
  }
  return data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Tells the curve in words, for those who do not see it.
std::string spoken(const Chart& chart, const std::vector<ChartLine>& lines) {
  std::string out = chart.title + " over the iterations.";
  for (const ChartLine& line : lines) {
    if (line.series.empty()) continue;
    const bool percent = chart.scale == Scale::kPercent;
    out += fmt::format(" {}: from {} to {}.", line.label, short_number(line.series.y.front(), percent),
                       short_number(line.series.y.back(), percent));
  }
  return out;
}

}  // namespace

std::string color(size_t index) { return fmt::format("var(--c{})", index % 8); }

std::vector<double> log_ticks(double low, double high) {
  const int first = static_cast<int>(std::lround(std::log10(low))),
            last = static_cast<int>(std::lround(std::log10(high)));
  const int stride = std::max(1, (last - first + 5) / 6);
  std::vector<double> out;
  for (int power = first; power <= last; power += stride) out.push_back(std::pow(10, power));
  return out;
}

std::vector<double> running_mean(const std::vector<double>& values, size_t width) {
  std::vector<double> out(values.size());
  const size_t half = width / 2;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t begin = i < half ? 0 : i - half, end = std::min(values.size(), i + half + 1);
    double sum = 0;
    for (size_t k = begin; k < end; ++k) sum += values[k];
    out[i] = sum / static_cast<double>(end - begin);
  }
  return out;
}

std::string draw_chart(const Chart& chart) {
  std::vector<ChartLine> lines;
  for (const ChartLine& line : chart.lines)
    lines.push_back({line.label, drawable(line.series, chart.scale), line.style});
  const Frame frame = frame_of(lines, chart.scale);
  std::string body = axes(frame, chart);
  for (const ChartLine& line : lines) body += curve(frame, line.series, line.style);
  return fmt::format(
      R"(<figure data-points="{}"><h3>{}</h3>{}<div class="tip" aria-live="polite"></div>)"
      R"(<svg viewBox="0 0 {} {}" role="img" tabindex="0" aria-label="{}">{}<line class="cursor" y1="{}" y2="{}"/></svg></figure>)",
      escape(points_json(frame, lines, chart.scale == Scale::kPercent)), escape(chart.title), legend(lines), kWidth,
      kHeight, escape(spoken(chart, lines)), body, kTop, kBottom);
}

std::string draw_sparkline(const Series& series) {
  const Series thin = drawable(series, Scale::kLinear);
  if (thin.x.size() < 2) return "";
  Range x, y;
  for (const double value : thin.x) x.include(value);
  for (const double value : thin.y) y.include(value);
  widen(y, 1);
  std::string points;
  for (size_t i = 0; i < thin.x.size(); ++i) {
    points += fmt::format("{:.1f},{:.1f} ", 2 + 116 * (thin.x[i] - x.low) / (x.high - x.low),
                          20 - 18 * (thin.y[i] - y.low) / (y.high - y.low));
  }
  return fmt::format(R"(<svg viewBox="0 0 120 22" aria-hidden="true"><polyline class="curve" )"
                     R"(style="stroke:var(--c0);stroke-width:1.3" points="{}"/></svg>)",
                     points);
}

}  // namespace collimate::report
