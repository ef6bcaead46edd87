#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collimate/report/change.h"
#include "collimate/report/html.h"
#include "collimate/report/sections.h"

namespace collimate::report {

namespace {

// Adds the first and the last value of a number. `best` is +1 when higher is better, -1 when lower is; where the last
// value is not the best one, the tile says so.
void add_change(const Series& series, const char* label, Scale scale, int best, std::vector<Tile>& tiles) {
  if (series.empty()) return;
  const bool percent = scale == Scale::kPercent;
  const double factor = percent ? 100 : 1;
  const char* unit = percent ? " %" : "";
  size_t top = 0;
  for (size_t i = 1; i < series.y.size(); ++i)
    if (best * series.y[i] > best * series.y[top]) top = i;
  Tile tile{
      fmt::format("{} → {}{}", short_number(series.y.front() * factor), short_number(series.y.back() * factor), unit),
      label, ""};
  if (series.y[top] != series.y.back())
    tile.detail =
        fmt::format("best {}{} at iteration {:.0f}", short_number(series.y[top] * factor), unit, series.x[top]);
  tiles.push_back(std::move(tile));
}

void add_noisy(const Series& series, const char* label, std::vector<Tile>& tiles) {
  std::optional<Change> change = change_over(series.y);
  if (!change) return;
  for (double* mean : {&change->before, &change->after})
    if (is_zero({{0}, {*mean}})) *mean = 0;
  tiles.push_back({short_number(change->before) + " → " + short_number(change->after), label, change->basis()});
}

// Telling says which tiles to make: kOnly leaves out those that say nothing of their own, such as a loss of 0 or a
// reward that is the accuracy.
enum class Telling { kOnly, kAll };

void add_held_out(const RunData& run, Telling telling, std::vector<Tile>& tiles) {
  const Series &accuracy = run.series("val/accuracy"), &reward = run.series("val/reward/mean");
  add_change(accuracy, "held-out accuracy", Scale::kPercent, 1, tiles);
  if (telling == Telling::kAll || !is_same(accuracy, reward))
    add_change(reward, "held-out reward", Scale::kLinear, 1, tiles);
  add_change(run.series("val/margin"), "held-out margin", Scale::kLinear, 1, tiles);
  add_change(run.series("val/rewards/accuracies"), "held-out preferences in order", Scale::kPercent, 1, tiles);
  add_change(run.series("val/rewards/margins"), "held-out implicit margin", Scale::kLinear, 1, tiles);
  add_change(run.series("val/loss"), "held-out loss", Scale::kLinear, -1, tiles);
}

void add_speed(const RunData& run, std::vector<Tile>& tiles) {
  const Series& throughput = run.series("perf/throughput");
  double speed = run.summary.is_object() ? run.summary.value("tokens_per_second", 0.0) : 0;
  if (speed <= 0 && !throughput.empty())
    speed = std::accumulate(throughput.y.begin(), throughput.y.end(), 0.0) / static_cast<double>(throughput.y.size());
  if (speed > 0) tiles.push_back({short_number(speed), "tokens per second", "mean"});
}

double largest(const RunData& run, std::string_view family) {
  double most = 0;
  for (auto entry = run.metrics.lower_bound(family); entry != run.metrics.end(); ++entry) {
    if (!entry->first.starts_with(family)) break;
    most = std::max(most, *std::max_element(entry->second.y.begin(), entry->second.y.end()));
  }
  return most;
}

std::vector<Tile> make_tiles(const RunData& run, Telling telling) {
  std::vector<Tile> tiles;
  add_held_out(run, telling, tiles);
  add_noisy(run.series("critic/rewards/mean"), "mean reward", tiles);
  const Series& loss = run.series("actor/loss");
  if (telling == Telling::kAll || !is_zero(loss)) add_noisy(loss, "loss", tiles);
  tiles.push_back({fmt::format("{}", run.last_step), run.last_step == 1 ? "iteration" : "iterations", ""});
  if (run.seconds > 0) tiles.push_back({duration(run.seconds), "whole time", ""});
  add_speed(run, tiles);
  const double memory = largest(run, "memory/peak_bytes");
  if (memory > 0) tiles.push_back({byte_size(memory), "peak memory", ""});
  const Series& mismatch = run.series("mismatch/logprob_abs_max");
  if (!mismatch.empty())
    tiles.push_back({short_number(*std::max_element(mismatch.y.begin(), mismatch.y.end())),
                     "largest difference of log-probs", "generation against training"});
  return tiles;
}

}  // namespace

std::vector<Tile> tiles_of(const RunData& run) { return make_tiles(run, Telling::kOnly); }
std::vector<Tile> all_tiles_of(const RunData& run) { return make_tiles(run, Telling::kAll); }

std::string draw_tiles(const RunData& run) {
  std::string out = R"(<div class="tiles">)";
  for (const Tile& tile : tiles_of(run))
    out += fmt::format(R"(<div class="tile"><b>{}</b><span>{}</span></div>)", escape(tile.value),
                       escape(tile.label + (tile.detail.empty() ? "" : ", " + tile.detail)));
  return out + "</div>";
}

}  // namespace collimate::report
