#include <fmt/format.h>

#include <algorithm>

#include "collimate/report/html.h"
#include "collimate/report/sections.h"

namespace collimate::report {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kShownBytes = 1 << 16;  // smaller items are in summary.json only

std::string row(const std::string& item, double planned, double peak) {
  const std::string plan = planned > 0 ? byte_size(planned) : "–";
  return fmt::format(R"(<tr><td>{}</td><td class="n">{}</td><td class="n">{}</td></tr>)", escape(item), plan,
                     byte_size(peak));
}

std::string worker_rows(const Json& worker) {
  std::string out;
  for (const Json& item : worker.value("items", Json::array())) {
    const double planned = item.value("planned_bytes", 0.0), peak = item.value("peak_bytes", 0.0);
    if (std::max(planned, peak) >= kShownBytes) out += row(base::memory_words(item.value("item", "")), planned, peak);
  }
  return out;
}

}  // namespace

std::string draw_memory(const RunData& run) {
  if (!run.summary.is_object()) return "";
  const Json memory = run.summary.value("memory", Json::object());
  std::string rows;
  for (const Json& worker : memory.value("workers", Json::array())) {
    const std::string items = worker_rows(worker);
    if (items.empty()) continue;
    const char* kind = worker.value("planned_bytes", 0.0) > 0 ? "device" : "host worker";
    rows += fmt::format(R"(<tr><th>{} {}</th><th class="n">{}</th><th class="n">{}</th></tr>)", kind,
                        worker.value("worker", 0), byte_size(worker.value("planned_bytes", 0.0)),
                        byte_size(worker.value("peak_bytes", 0.0))) +
            items;
  }
  if (rows.empty()) return "";
  return fmt::format(
      R"(<h2>Memory</h2><p class="soft">Planned: what each device was expected to hold, by shapes and limits, before the start. Most: the )"
      R"(largest amount that it held at a time. The process, libraries included, took {} at the start and {} at most.</p>)"
      R"(<div class="scroll" tabindex="0"><table><tr><th scope="col">what for</th><th class="n" scope="col">planned</th>)"
      R"(<th class="n" scope="col">most</th></tr>{}</table></div>)",
      byte_size(memory.value("process_start_bytes", 0.0)), byte_size(memory.value("process_peak_bytes", 0.0)), rows);
}

}  // namespace collimate::report
