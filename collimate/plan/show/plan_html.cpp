#include "collimate/plan/show/plan_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collimate/plan/digits.h"

namespace collimate::plan {
namespace {

constexpr double kWidth = 1000, kLaneHeight = 26, kLabelWidth = 110;
constexpr const char* kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:1160px;margin:2em auto;padding:0 1em;color:#1c2430}"
    "table{border-collapse:collapse;margin:.6em 0}td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid "
    "#d9dee6}td:first-child,th:first-child,td.l{text-align:left}svg{display:block;margin:.6em 0;max-width:100%}"
    "text{font:12px system-ui,sans-serif;fill:#1c2430}.n{color:#5b6675}"
    "@media(prefers-color-scheme:dark){body{background:#14181f;color:#dbe2ec}text{fill:#dbe2ec}td,th{border-color:"
    "#333b47}}";

std::string escape(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

// Hues far apart for neighbours in the graph.
std::string color(int index) {
  return index < 0 ? "#8a93a0" : fmt::format("hsl({} 55% 58%)", (index * 137 + 210) % 360);
}

std::string box(double x, double y, double width, double height, const std::string& fill, const std::string& title) {
  return fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"><title>{}</title>"
      "</rect>",
      x, y, std::max(width, 0.5), height, fill, escape(title));
}

std::string words(double x, double y, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x, y, escape(text));
}

std::string svg(double height, const std::string& body) {
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" role=\"img\">{}</svg>\n",
                     kLabelWidth + kWidth + 60, height, kLabelWidth + kWidth + 60, body);
}

std::string timeline_svg(const Timeline& timeline) {
  std::string body;
  double y = 4;
  for (const Lane& lane : timeline.lanes) {
    body += words(0, y + 16, lane.label);
    for (const Bubble& bubble : lane.bubbles)
      body += box(kLabelWidth + bubble.begin_seconds / timeline.seconds * kWidth, y + 9,
                  (bubble.end_seconds - bubble.begin_seconds) / timeline.seconds * kWidth, 4, "#c9cfd8",
                  fmt::format("idle {:.2f} s, waits for {}", bubble.end_seconds - bubble.begin_seconds, bubble.cause));
    for (const Block& block : lane.blocks) {
      const double x = kLabelWidth + block.begin_seconds / timeline.seconds * kWidth;
      const double width = (block.end_seconds - block.begin_seconds) / timeline.seconds * kWidth;
      body += box(x, y, width, kLaneHeight - 4, color(block.call),
                  fmt::format("{}: {:.2f} s", block.label, block.end_seconds - block.begin_seconds));
      if (width > 8.0 * static_cast<double>(block.label.size())) body += words(x + 4, y + 15, block.label);
    }
    y += kLaneHeight;
  }
  for (int tick = 0; tick <= 10; ++tick)
    body += words(kLabelWidth + kWidth * tick / 10 - 8, y + 14, fmt::format("{:.4g}", timeline.seconds * tick / 10));
  return svg(y + 22, body + words(kLabelWidth + kWidth + 26, y + 14, "s"));
}

bool prices_are_given(const Cluster& cluster) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(),
                     [](const NodeGroup& group) { return group.gpu.price_given; });
}

std::string memory_svg(const Request& request, const Plan& plan) {
  std::string body;
  double y = 4;
  for (const DeviceMemory& memory : plan.memory) {
    double x = kLabelWidth;
    body += words(0, y + 16, devices_text(request.cluster, memory.devices));
    int index = 0;
    for (const auto* items : {&memory.resident, &memory.peak})
      for (const HeldItem& item : *items) {
        const double width = item.bytes / memory.usable_bytes * kWidth;
        const std::string title = fmt::format("{} of {}: {:.2f} GB", item.what, item.owner, item.bytes / 1e9);
        body += box(x, y, width - 0.5, kLaneHeight - 4, items == &memory.resident ? color(index++) : color(-1), title);
        if (width > 8.0 * static_cast<double>(item.owner.size() + item.what.size()))
          body += words(x + 4, y + 15, item.owner + " " + item.what);
        x += width;
      }
    body += box(kLabelWidth + kWidth, y - 4, 1.5, kLaneHeight, "#c0392b",
                fmt::format("{:.1f} GB usable", memory.usable_bytes / 1e9));
    y += kLaneHeight;
  }
  return svg(y + 6, body);
}

std::string calls_table(const Plan& plan) {
  std::string rows =
      "<table><tr><th>function</th><th>devices</th><th>seconds</th><th>compute</th><th>decode</th><th>tensor</th>"
      "<th>bubble</th><th>update</th><th>fixed</th><th>layout</th></tr>\n";
  for (const Call& call : plan.calls) {
    if (call.devices.empty()) continue;
    const PhaseTime& t = call.time;
    rows += fmt::format(
        "<tr><td>{}.{}</td><td>{}</td><td>{:.2f}</td><td>{:.2f}</td><td>{:.2f}</td><td>{:.2f}</td>"
        "<td>{:.2f}</td><td>{:.2f}</td><td>{:.2f}</td><td class=\"l\">{}{}</td></tr>\n",
        escape(call.model), escape(call.function), devices_text(call.devices), call.seconds, t.compute + t.prefill,
        t.memory + t.latency, t.tensor, t.bubble, t.data + t.optimizer, t.fixed, escape(layout_text(call.how)),
        call.swapped ? " · swapped" : "");
  }
  return rows + "</table>\n";
}

std::string runner_up_table(const SearchResult& result) {
  if (result.plans.size() < 2) return "";
  std::string rows = "<h2>Runner-ups</h2><table><tr><th>form</th><th>slower</th><th>placement</th><th>why</th></tr>\n";
  for (size_t i = 1; i < result.plans.size(); ++i)
    rows += fmt::format("<tr><td>{}</td><td>{:+.1f} %</td><td class=\"l\">{}</td><td class=\"l\">{}</td></tr>\n",
                        result.plans[i].form, 100 * (result.plans[i].seconds / result.plans[0].seconds - 1),
                        escape(result.plans[i].parts + staleness_text(result.plans[i])),
                        escape(loss_text(result.plans[0], result.plans[i])));
  return rows + "</table>\n";
}

std::string synchrony_table(const SearchResult& result) {
  if (result.synchrony.empty()) return "";
  std::string rows =
      "<h2>Staleness</h2><table><tr><th>iterations ahead</th><th>seconds</th><th>its best plan</th></tr>\n";
  for (const Synchrony& tried : result.synchrony)
    rows += fmt::format(
        "<tr><td>{}{}</td><td>{}</td><td class=\"l\">{}</td></tr>\n", tried.staleness,
        tried.staleness == result.plans[0].placement.staleness ? " (taken)" : "",
        std::isinf(tried.seconds) ? "" : three_digits(tried.seconds, 2),
        std::isinf(tried.seconds) ? "nothing that gains 0.5 % over less" : escape(tried.form + ": " + tried.parts));
  return rows + "</table>\n";
}

}  // namespace

std::string search_html(const Request& request, const SearchResult& result, int64_t iterations) {
  const Plan& best = result.plans.at(0);
  const Timeline timeline = timeline_of(request, best, simulate_plan(request, best));
  std::string page = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Plan for {0}</title><style>{1}</style>\n"
      "<h1>{2} on {0}</h1><p>{3}</p>\n"
      "<p><b>{4} s</b> an iteration (simulated), {5:.0f} tokens/s; {6}.</p>\n<h2>One period</h2>\n",
      escape(cluster_text(request.cluster)), kStyle, best.form, escape(best.parts + staleness_text(best)),
      three_digits(best.seconds, 2), request.load.tokens() / best.seconds,
      escape(cost_text(request, best.seconds, iterations)));
  page += timeline_svg(timeline) + calls_table(best);
  page +=
      "<h2>Memory of a device</h2>\n" + memory_svg(request, best) + runner_up_table(result) + synchrony_table(result);
  page += fmt::format(
      "<p class=\"n\">{} placements bounded, {} pruned, {} not searched to the end. Times are simulated "
      "from a cost model, not measured. Price: {}.</p></html>\n",
      result.placements, result.pruned, result.cut_short,
      prices_are_given(request.cluster) ? "as given" : escape(price_source()));
  return page;
}

}  // namespace collimate::plan
