#include "collimate/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "collimate/base/error.h"
#include "collimate/report/heading.h"
#include "collimate/report/html.h"
#include "collimate/report/page.h"
#include "collimate/report/report.h"
#include "collimate/report/sections.h"

namespace collimate::report {

namespace fs = std::filesystem;

namespace {

constexpr const char* kNothing = "–";

// Returns the last `parts` parts of a path.
std::string end_of(const fs::path& path, size_t parts) {
  const auto count = static_cast<size_t>(std::distance(path.begin(), path.end()));
  fs::path end;
  for (auto part = std::next(path.begin(), static_cast<std::ptrdiff_t>(count - std::min(parts, count)));
       part != path.end(); ++part)
    end /= *part;
  return end.string();
}

// Draws a table with each row's name at the left and a column for each run, under the colour of its curves.
std::string table(const std::vector<RunData>& runs, const std::vector<Difference>& rows) {
  std::string out = R"(<div class="scroll" tabindex="0"><table class="runs"><tr><td></td>)";
  for (size_t r = 0; r < runs.size(); ++r)
    out += fmt::format(R"(<th scope="col"><span class="swatch" style="background:{}"></span>{}</th>)", color(r),
                       escape(runs[r].name));
  out += "</tr>";
  for (const Difference& row : rows) {
    out += fmt::format(R"(<tr><th scope="row">{}</th>)", escape(row.key));
    for (const std::string& value : row.values) out += "<td>" + escape(value) + "</td>";
    out += "</tr>";
  }
  return out + "</table></div>";
}

// Returns what each run was, with a row for each fact that any run has.
std::vector<Difference> facts_of(const std::vector<RunData>& runs) {
  std::vector<Difference> rows = {{"recipe", {}}, {"model", {}}, {"data", {}}, {"ended", {}}, {"try it", {}}};
  for (const RunData& run : runs) {
    const Heading heading = heading_of(run);
    const std::string values[] = {heading.recipe, heading.model, heading.data,
                                  run.summary.is_null() ? "not yet" : heading.ended, heading.command};
    for (size_t i = 0; i < rows.size(); ++i) rows[i].values.push_back(values[i]);
  }
  std::erase_if(rows, [](const Difference& row) {
    return std::all_of(row.values.begin(), row.values.end(), [](const std::string& value) { return value.empty(); });
  });
  return rows;
}

// Returns the tiles that the page of any of the runs has, with the value in each run, in the order of the first run
// that has them.
std::vector<Difference> numbers_of(const std::vector<RunData>& runs) {
  std::vector<Difference> rows;
  const auto row_of = [&](const Tile& tile) {
    return std::find_if(rows.begin(), rows.end(), [&](const Difference& d) { return d.key == tile.label; });
  };
  for (const RunData& run : runs)
    for (const Tile& tile : tiles_of(run))
      if (row_of(tile) == rows.end()) rows.push_back({tile.label, std::vector<std::string>(runs.size(), kNothing)});
  for (size_t r = 0; r < runs.size(); ++r)
    for (const Tile& tile : all_tiles_of(runs[r]))
      if (const auto row = row_of(tile); row != rows.end())
        row->values[r] = tile.value + (tile.detail.empty() ? "" : " (" + tile.detail + ")");
  return rows;
}

std::string warnings_of(const std::vector<RunData>& runs) {
  std::string out;
  for (const RunData& run : runs)
    if (const std::string warnings = draw_warnings(run); !warnings.empty())
      out += fmt::format("<h3>{}</h3>{}", escape(run.name), warnings);
  return out.empty() ? "" : "<h2>Warnings</h2>" + out;
}

// Draws the differences of the configs. Keys that only some runs have are many and say little: they are folded away.
std::string difference_tables(const std::vector<RunData>& runs, std::vector<Difference> rows) {
  const auto all_have_it = [&](const Difference& row) {
    for (size_t r = 0; r < runs.size(); ++r)
      if (!runs[r].config.empty() && row.values[r] == kNothing) return false;
    return true;
  };
  const auto others = std::stable_partition(rows.begin(), rows.end(), all_have_it);
  const std::vector<Difference> some(others, rows.end());
  rows.erase(others, rows.end());
  std::string out = rows.empty() ? "<p>Nothing.</p>" : table(runs, rows);
  if (some.empty()) return out;
  return out + fmt::format("<details><summary>{} more, which only some of these runs use</summary>{}</details>",
                           some.size(), table(runs, some));
}

std::string differences_section(const std::vector<RunData>& runs) {
  std::string without;
  for (const RunData& run : runs)
    if (run.config.empty()) without += (without.empty() ? "" : ", ") + run.name;
  std::string out = "<h2>What differs in the configs</h2>";
  if (!without.empty())
    out += fmt::format(R"(<p class="soft">Without a config.resolved.yaml: {}.</p>)", escape(without));
  return out + difference_tables(runs, config_differences(runs));
}

}  // namespace

std::vector<Difference> config_differences(const std::vector<RunData>& runs) {
  std::map<std::string, std::vector<std::string>> values;
  for (size_t r = 0; r < runs.size(); ++r) {
    if (runs[r].settings.is_null()) continue;
    const nlohmann::json flat = runs[r].settings.flatten();
    for (const auto& item : flat.items()) {
      if (item.key().empty()) continue;  // of an empty config
      std::string key = item.key().substr(1);
      std::replace(key.begin(), key.end(), '/', '.');
      const auto entry = values.try_emplace(std::move(key), std::vector<std::string>(runs.size(), kNothing)).first;
      entry->second[r] = item.value().is_string() ? item.value().get<std::string>() : item.value().dump();
    }
  }
  std::vector<Difference> rows;
  for (auto& [key, row] : values)
    if (std::adjacent_find(row.begin(), row.end(), std::not_equal_to<>()) != row.end())
      rows.push_back({key, std::move(row)});
  return rows;
}

void name_apart(std::vector<RunData>& runs) {
  std::set<fs::path> paths;
  for (const RunData& run : runs)
    if (!paths.insert(fs::weakly_canonical(run.directory)).second)
      throw base::InputError(base::expectation("report", "different runs", run.directory + " twice"));
  std::set<std::string> names;
  for (size_t parts = 1; names.size() < runs.size(); ++parts) {
    names.clear();
    for (RunData& run : runs) names.insert(run.name = end_of(fs::weakly_canonical(run.directory), parts));
  }
}

std::string render_comparison(const std::vector<fs::path>& run_directories) {
  if (run_directories.size() < 2)
    throw base::InputError(base::expectation("report", "two or more runs to compare",
                                             std::to_string(run_directories.size()), "collimate report DIR DIR"));
  std::vector<RunData> runs;
  for (const fs::path& directory : run_directories) runs.push_back(read_run(directory));
  name_apart(runs);
  std::string names;
  for (size_t r = 0; r < runs.size(); ++r)
    names += (r == 0 ? "" : r + 1 == runs.size() ? " and " : ", ") + runs[r].name;
  return html_page("Runs " + names, fmt::format("<h1>Runs {}</h1>", escape(names)) + table(runs, facts_of(runs)) +
                                        warnings_of(runs) + "<h2>Numbers</h2>" + table(runs, numbers_of(runs)) +
                                        differences_section(runs) + draw_curves(curves_of(runs)) + draw_samples(runs));
}

}  // namespace collimate::report
