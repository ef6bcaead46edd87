#include "collimate/plan/show/plan_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "collimate/base/html.h"
#include "collimate/base/ticks.h"
#include "collimate/plan/digits.h"
#include "collimate/plan/show/columns.h"

namespace collimate::plan {
namespace {

using base::html_escape;

constexpr double kLeft = 124, kRight = 1060, kWidth = 1100, kLane = 30, kTop = 6, kCharacter = 7.2;
constexpr int kLabelCharacters = 16;
constexpr const char* kNewWeights = "new weights, loads";

// Returns the x of `value` on an axis that goes to `end`.
double to_x(double value, double end) { return kLeft + value / end * (kRight - kLeft); }

// Functions have the colours of the palette that nobody takes for the grey of kMoving.
std::string color(size_t index) {
  constexpr int kColors[] = {0, 1, 2, 3, 4, 6, 7};
  return fmt::format("var(--c{})", kColors[index % std::size(kColors)]);
}

// Items of memory may also have the grey of the palette, which nothing else in their picture has.
std::string memory_color(size_t index) {
  constexpr size_t kLast = 7;
  return index % (kLast + 1) == kLast ? "var(--c5)" : color(index % (kLast + 1));
}

std::string box(double x, double y, double width, const std::string& style, const std::string& title) {
  return fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{}" style="{}"><title>{}</title></rect>)", x,
                     y, std::max(width, 0.8), kLane - 6, style, html_escape(title));
}

// Draws the text in a box, where it has room.
std::string inside(double x, double y, double width, const std::string& text) {
  if (width < kCharacter * (width_of(text) + 1)) return "";
  return fmt::format(R"(<text class="on" x="{:.1f}" y="{:.1f}">{}</text>)", x + 5, y + 16, html_escape(text));
}

std::string lane_label(double y, const std::string& label) {
  return fmt::format(R"(<text x="{}" y="{:.1f}" text-anchor="end">{}<title>{}</title></text>)", kLeft - 10, y + 16,
                     html_escape(cut_to(label, kLabelCharacters)), html_escape(label));
}

// Draws grid lines with round values below the lanes, and the unit of the values.
std::string axis(double end, double bottom, const char* unit) {
  std::string out;
  for (const double tick : base::ticks(0, end, 8)) {
    const double x = to_x(tick, end);
    out += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="2" y2="{1}"/>)", x, bottom);
    out += fmt::format(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{:.6g}</text>)", x, bottom + 17, tick);
  }
  return out +
         fmt::format(R"(<text x="{}" y="{}" text-anchor="middle">{}</text>)", (kLeft + kRight) / 2, bottom + 36, unit);
}

struct Entry {
  std::string style, label;
  bool hatched = false;
};

std::string legend(const std::vector<Entry>& entries) {
  std::string out = R"(<ul class="legend">)";
  for (const Entry& entry : entries)
    out +=
        fmt::format(R"(<li><svg class="key" viewBox="0 0 14 14" aria-hidden="true"><rect width="14" height="14" )"
                    R"(style="{}"/>{}</svg>{}</li>)",
                    entry.style, entry.hatched ? R"x(<rect width="14" height="14" style="fill:url(#passing)"/>)x" : "",
                    html_escape(entry.label));
  return out + "</ul>";
}

std::string figure(const std::string& entries, double bottom, const std::string& said, const std::string& body) {
  return fmt::format(
      R"(<figure>{}<div class="scroll" tabindex="0"><svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg></div></figure>)"
      "\n",
      entries, kWidth, bottom + 42, html_escape(said), body);
}

// Numbers the colours of the functions on devices, in the order of the graph.
std::vector<size_t> call_styles(const Plan& plan) {
  std::vector<size_t> styles(plan.calls.size());
  size_t next = 0;
  for (size_t i = 0; i < plan.calls.size(); ++i)
    if (!plan.calls[i].devices.empty()) styles[i] = next++;
  return styles;
}

constexpr const char* kMoving = "fill:var(--soft)";
constexpr const char* kIdle = "fill:none;stroke:var(--soft);stroke-dasharray:3 3";

std::string lane_boxes(const Lane& lane, const std::vector<size_t>& styles, double end, double y) {
  std::string out;
  for (const Bubble& bubble : lane.bubbles) {
    const double seconds = bubble.end_seconds - bubble.begin_seconds;
    out += box(to_x(bubble.begin_seconds, end), y, to_x(seconds, end) - kLeft, kIdle,
               fmt::format("idle {} s, waits for {}", three_digits(seconds, 2), bubble.cause));
  }
  for (const Block& block : lane.blocks) {
    const double seconds = block.end_seconds - block.begin_seconds;
    const double x = to_x(block.begin_seconds, end), width = to_x(seconds, end) - kLeft;
    const std::string style = block.call < 0 ? kMoving : "fill:" + color(styles.at(static_cast<size_t>(block.call)));
    out += box(x, y, width, style, fmt::format("{}: {} s", block.label, three_digits(seconds, 2))) +
           inside(x, y, width, block.label);
  }
  return out;
}

std::string timeline_said(const Timeline& timeline) {
  std::string said = fmt::format("One iteration of {} seconds.", three_digits(timeline.seconds, 2));
  for (const Lane& lane : timeline.lanes)
    said +=
        fmt::format(" Devices {} are idle for {:.0f} % of it.", lane.label, 100 * lane.idle_seconds / timeline.seconds);
  return said;
}

// Returns the colour number of an item of memory. Numbers are in the order of first use.
size_t style_of(const std::string& what, std::vector<std::string>& known) {
  const auto found = std::find(known.begin(), known.end(), what);
  if (found != known.end()) return static_cast<size_t>(found - known.begin());
  known.push_back(what);
  return known.size() - 1;
}

std::string held_boxes(const DeviceMemory& memory, double end, double y, std::vector<std::string>& known) {
  std::string out;
  double before = 0;
  for (const auto* items : {&memory.resident, &memory.peak})
    for (const HeldItem& item : *items) {
      if (item.bytes <= 0) continue;
      const double gigabytes = item.bytes / 1e9, x = to_x(before, end), width = to_x(gigabytes, end) - kLeft;
      const bool stays = items == &memory.resident;
      const std::string fill = "fill:" + memory_color(style_of(item.what, known)) + ";stroke:var(--panel)";
      out += box(x, y, width, fill,
                 fmt::format("{} of {}: {} GB, {}", item.what, item.owner, three_digits(gigabytes, 1),
                             stays ? "stays" : "while this function runs"));
      if (!stays) out += box(x, y, width, "fill:url(#passing);pointer-events:none", "");
      out += inside(x, y, width, item.what + " of " + item.owner);
      before += gigabytes;
    }
  return out;
}

constexpr const char* kHatch =
    R"x(<defs><pattern id="passing" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">)x"
    R"(<line x1="0" x2="0" y1="0" y2="8" style="stroke:var(--panel);stroke-width:2;stroke-opacity:.45"/></pattern></defs>)";

// Writes "all that can be used: 75.2 GB", with each number that kinds of device have.
std::string limits_text(const std::set<double>& gigabytes) {
  std::string text = "all that can be used: ";
  for (const double limit : gigabytes) text += (limit == *gigabytes.begin() ? "" : " or ") + three_digits(limit, 1);
  return text + " GB";
}

}  // namespace

std::string timeline_figure(const Plan& plan, const Timeline& timeline) {
  const std::vector<size_t> styles = call_styles(plan);
  const double bottom = kTop + kLane * static_cast<double>(timeline.lanes.size());
  std::string body = axis(timeline.seconds, bottom, "seconds");
  double y = kTop;
  for (const Lane& lane : timeline.lanes) {
    body += lane_label(y, lane.label) + lane_boxes(lane, styles, timeline.seconds, y);
    y += kLane;
  }
  std::vector<Entry> entries;
  for (size_t i = 0; i < plan.calls.size(); ++i)
    if (!plan.calls[i].devices.empty())
      entries.push_back({"fill:" + color(styles[i]), plan.calls[i].model + "." + plan.calls[i].function});
  entries.push_back({kMoving, kNewWeights});
  entries.push_back({kIdle, "idle"});
  return figure(legend(entries), bottom, timeline_said(timeline), body);
}

std::string memory_figure(const Request& request, const Plan& plan) {
  double end = 0;
  std::string said = "Memory of each device when it holds most.", boxes;
  for (const DeviceMemory& memory : plan.memory)
    end = std::max({end, memory.usable_bytes / 1e9, memory.peak_bytes / 1e9});
  const double bottom = kTop + kLane * static_cast<double>(plan.memory.size());
  std::vector<std::string> known;
  std::set<double> limits;
  double y = kTop;
  for (const DeviceMemory& memory : plan.memory) {
    const std::string devices = devices_text(request.cluster, memory.devices);
    const double usable = memory.usable_bytes / 1e9, x = to_x(usable, end);
    limits.insert(usable);
    boxes += lane_label(y, devices) + held_boxes(memory, end, y, known) +
             fmt::format(R"(<line class="limit" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"><title>{3:.1f} GB usable)"
                         "</title></line>",
                         x, y - 3, y + kLane - 3, usable);
    said += fmt::format(" Devices {}: {} of {} GB.", devices, three_digits(memory.peak_bytes / 1e9, 1),
                        three_digits(usable, 1));
    y += kLane;
  }
  std::vector<Entry> entries;
  for (size_t i = 0; i < known.size(); ++i) entries.push_back({"fill:" + memory_color(i), known[i]});
  entries.push_back({"fill:var(--bad)", limits_text(limits)});
  entries.push_back({kMoving, "hatched: only while a function runs", true});
  return figure(legend(entries), bottom, said, kHatch + axis(end, bottom, "GB on each device") + boxes);
}

}  // namespace collimate::plan
