#include "collimate/report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "collimate/report/html.h"

namespace collimate::report {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostSamples = 8;

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::string tile(const std::string& value, const std::string& label) {
  return fmt::format(R"(<div class="tile"><b>{}</b><span>{}</span></div>)", escape(value), escape(label));
}

// `best`: +1 when higher is better, -1 when lower is; a run that ends below its best says so.
std::string change_tile(const Series& series, std::string label, bool percent, int best) {
  if (series.empty()) return "";
  const double factor = percent ? 100 : 1;
  size_t top = 0;
  for (size_t i = 1; i < series.y.size(); ++i)
    if (best * series.y[i] > best * series.y[top]) top = i;
  if (series.y[top] != series.y.back())
    label += fmt::format(", best {}{} at step {:.0f}", short_number(series.y[top] * factor), percent ? " %" : "",
                         series.x[top]);
  return tile(fmt::format("{} → {}{}", short_number(series.y.front() * factor), short_number(series.y.back() * factor),
                          percent ? " %" : ""),
              label);
}

std::string reward_tile(const Series& series) {
  if (series.empty()) return "";
  const size_t few = std::min<size_t>(5, (series.y.size() + 1) / 2);
  const double before = mean(std::span(series.y).first(few)), after = mean(std::span(series.y).last(few));
  const std::string label =
      few == 1 ? "mean reward, first and last step" : fmt::format("mean reward, first {} and last {} steps", few, few);
  return tile(short_number(before) + " → " + short_number(after), label);
}

double largest(const RunData& run, std::string_view family) {
  double most = 0;
  for (auto entry = run.metrics.lower_bound(family); entry != run.metrics.end(); ++entry) {
    if (!entry->first.starts_with(family)) break;
    most = std::max(most, *std::max_element(entry->second.y.begin(), entry->second.y.end()));
  }
  return most;
}

// `kind` is the chip's colour: up, down or flat.
std::string completion(const Sample& sample, int64_t step, const char* when, const char* kind) {
  const std::string chip = std::isnan(sample.reward) ? ""
                                                     : fmt::format(R"(<span class="chip {}">reward {}</span>)", kind,
                                                                   short_number(sample.reward));
  return fmt::format(R"(<div><span class="label">{}, step {}</span>{}<div class="text">{}</div></div>)", when, step,
                     chip, escape(sample.completion));
}

std::string before_and_after(const Sample& before, const Sample& after, const RunData& run) {
  const char* kind = after.reward > before.reward ? "up" : after.reward < before.reward ? "down" : "flat";
  return completion(before, run.first_samples.step, "before", "flat") +
         completion(after, run.last_samples.step, "after", kind);
}

std::string card(const Sample& sample, const std::string& completions) {
  const auto part = [](const char* label, const std::string& text) {
    return fmt::format(R"(<div><div class="label">{}</div><div class="text">{}</div></div>)", label, escape(text));
  };
  return fmt::format(
      R"(<article class="sample"><header class="pair">{}{}</header><div class="pair">{}</div></article>)",
      part("prompt", sample.prompt), sample.expected.empty() ? "" : part("expected", sample.expected), completions);
}

// First sample of each prompt, in file order: nothing is picked by its reward.
std::vector<const Sample*> first_of_each_prompt(const SampleFile& file) {
  std::vector<const Sample*> out;
  std::set<std::string_view> seen;
  for (const Sample& sample : file.samples) {
    if (seen.insert(sample.prompt).second) out.push_back(&sample);
  }
  return out;
}

std::string paired(const RunData& run) {
  std::string out;
  size_t count = 0;
  const std::vector<const Sample*> before = first_of_each_prompt(run.first_samples);
  for (const Sample* after : first_of_each_prompt(run.last_samples)) {
    const auto same =
        std::find_if(before.begin(), before.end(), [&](const Sample* s) { return s->prompt == after->prompt; });
    if (same == before.end() || count++ >= kMostSamples) continue;
    out += card(*after, before_and_after(**same, *after, run));
  }
  return out;
}

std::string listed(const SampleFile& file, const char* when) {
  std::string out = "<div>";
  size_t count = 0;
  for (const Sample* sample : first_of_each_prompt(file)) {
    if (count++ < kMostSamples / 2) out += card(*sample, completion(*sample, file.step, when, "flat"));
  }
  return out + "</div>";
}

void flatten(const Json& value, const std::string& name, std::vector<std::pair<std::string, std::string>>& rows) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) flatten(inner, name.empty() ? key : name + " · " + key, rows);
  } else {
    rows.emplace_back(name, name.ends_with("_bytes") && value.is_number() ? byte_size(value.get<double>())
                            : value.is_string()                           ? value.get<std::string>()
                            : value.is_number_float()                     ? fmt::format("{:.6g}", value.get<double>())
                                                                          : value.dump());
  }
}

}  // namespace

std::string draw_tiles(const RunData& run) {
  std::string out = R"(<div class="tiles">)";
  out += change_tile(run.series("val/accuracy"), "held-out accuracy", true, 1);
  out += change_tile(run.series("val/reward/mean"), "held-out reward", false, 1);
  out += change_tile(run.series("val/loss"), "held-out loss", false, -1);
  const Series& rewards = run.series("critic/rewards/mean");
  out += reward_tile(rewards.empty() ? run.series("critic/score/mean") : rewards);
  out += tile(fmt::format("{}", run.last_step), "steps");
  if (run.seconds > 0) out += tile(duration(run.seconds), "wall time");
  const Series& throughput = run.series("perf/throughput");
  if (!throughput.empty()) out += tile(short_number(mean(throughput.y)), "tokens per second, mean");
  const double memory = largest(run, "memory/peak_bytes");
  if (memory > 0) out += tile(byte_size(memory), "peak memory");
  const Series& mismatch = run.series("mismatch/logprob_abs_max");
  if (!mismatch.empty()) {
    out += tile(short_number(*std::max_element(mismatch.y.begin(), mismatch.y.end())),
                "largest log-prob difference, decode against training");
  }
  return out + "</div>";
}

std::string draw_samples(const RunData& run) {
  if (run.first_samples.samples.empty() && run.last_samples.samples.empty()) return "";
  std::string body = paired(run);
  std::string note = run.first_samples.held_out
                         ? "The same prompts at the first and the last evaluation, in the order of the file."
                         : "Prompts of the first and of the last file of training samples, in the order of the last.";
  if (body.empty()) {
    body =
        R"(<div class="charts">)" + listed(run.first_samples, "before") + listed(run.last_samples, "after") + "</div>";
    note = "The first prompts of the first and of the last file of samples, in the order of the files.";
  }
  return fmt::format(R"(<h2>Samples before and after</h2><p class="soft">{}</p>{})", note, body);
}

std::string draw_facts(const RunData& run) {
  std::string out = "<h2>Config and versions</h2>";
  Json facts = run.summary;
  if (facts.is_object())  // they have sections of their own
    for (const char* shown : {"final_metrics", "phase_seconds", "memory"}) facts.erase(shown);
  std::vector<std::pair<std::string, std::string>> rows;
  flatten(facts, "", rows);
  if (!run.summary.is_null()) {
    out += R"(<div class="scroll"><table>)";
    for (const auto& [name, value] : rows) {
      out += fmt::format("<tr><th>{}</th><td>{}</td></tr>", escape(name), escape(value));
    }
    out += "</table></div>";
  }
  if (!run.config.empty()) {
    out += "<details><summary>The resolved config</summary><pre>" + escape(run.config) + "</pre></details>";
  }
  return out;
}

std::string draw_all_metrics(const RunData& run) {
  std::string out = fmt::format(
      R"(<details><summary>All {} metrics</summary><div class="scroll"><table><tr><th>metric</th><th></th><th class="n">first</th>)"
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
