#include "collimate/report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collimate/report/html.h"

namespace collimate::report {

namespace {

using Json = nlohmann::ordered_json;

using Rows = std::vector<std::pair<std::string, std::string>>;

void flatten(const Json& value, std::string name, Rows& rows) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) flatten(inner, name.empty() ? key : name + ": " + key, rows);
    return;
  }
  std::string text = value.is_string()         ? value.get<std::string>()
                     : value.is_number_float() ? fmt::format("{:.6g}", value.get<double>())
                                               : value.dump();
  constexpr std::string_view kBytes = "_bytes";
  if (name.ends_with(kBytes) && value.is_number()) {
    text = byte_size(value.get<double>());
    name.resize(name.size() - kBytes.size());
  }
  std::replace(name.begin(), name.end(), '_', ' ');
  rows.emplace_back(std::move(name), std::move(text));
}

// Adds rows of best values: "best val/accuracy", "0.94 at iteration 4".
void add_best(const Json& best, Rows& rows) {
  for (const auto& [metric, where] : best.items())
    rows.emplace_back("best " + metric, fmt::format("{:.6g} at iteration {}", where.value("value", 0.0),
                                                    where.value("step", int64_t{0})));
}

// Adds rows of what was held out: "held out: data.eval", "completions of 64 examples: 256 rows, 100 of them in
// samples/".
void add_held_out(const Json& counts, Rows& rows) {
  for (const Json& count : counts)
    rows.emplace_back("held out: " + count.value("data", ""),
                      fmt::format("{} of {} examples: {} rows, {} of them in samples/", count.value("measured", ""),
                                  count.value("examples", int64_t{0}), count.value("rows", int64_t{0}),
                                  count.value("rows_in_samples", int64_t{0})));
}

}  // namespace

std::string draw_facts(const RunData& run) {
  std::string out = "<h2>Config and versions</h2>";
  Json facts = run.summary;
  if (facts.is_object())  // they have sections of their own
    for (const char* shown : {"final_metrics", "phase_seconds", "memory", "warnings", "left_out", "first_evaluation",
                              "last_evaluation", "generates", "ended", "diverged"})
      facts.erase(shown);
  Rows rows;
  if (facts.is_object()) {
    add_best(facts.value("best_metrics", Json::object()), rows);
    facts.erase("best_metrics");
    add_held_out(facts.value("held_out", Json::array()), rows);
    facts.erase("held_out");
  }
  flatten(facts, "", rows);
  if (!run.summary.is_null()) {
    out += R"(<div class="scroll" tabindex="0"><table>)";
    for (const auto& [name, value] : rows) {
      out += fmt::format(R"(<tr><th scope="row">{}</th><td>{}</td></tr>)", escape(name), escape(value));
    }
    out += "</table></div>";
  }
  if (!run.config.empty()) {
    out += "<details><summary>The resolved config</summary><pre>" + escape(run.config) + "</pre></details>";
  }
  return out;
}

std::string draw_all_metrics(const RunData& run) {
  if (run.metrics.empty()) return "";
  std::string out = fmt::format(
      R"(<details><summary>All {} metrics</summary><div class="scroll" tabindex="0"><table><tr><th scope="col">metric</th><td></td><th class="n">first</th>)"
      R"(<th class="n">last</th><th class="n">lowest</th><th class="n">highest</th></tr>)",
      run.metrics.size());
  for (const auto& [name, series] : run.metrics) {
    const auto [low, high] = std::minmax_element(series.y.begin(), series.y.end());
    out += fmt::format(R"(<tr><td>{}</td><td>{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td>)"
                       R"(<td class="n">{}</td></tr>)",
                       escape(name), draw_sparkline(series), short_number(series.y.front()),
                       short_number(series.y.back()), short_number(*low), short_number(*high));
  }
  return out + "</table></div></details>";
}

}  // namespace collimate::report
