#include "collimate/report/run_data.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "collimate/base/config_node.h"
#include "collimate/base/config_yaml.h"
#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/base/metrics.h"
#include "collimate/base/read_file.h"
#include "collimate/report/trace_events.h"

namespace collimate::report {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

Json parse_file(const fs::path& path) { return base::parse_ordered_json(base::read_file(path), path.string(), 1); }

std::string text_of(const Json& line, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = line.find(name);
    if (found == line.end() || found->is_null()) continue;
    return found->is_string() ? found->get<std::string>() : found->dump();
  }
  return "";
}

double number_of(const Json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

Sample parse_sample(const Json& line) {
  Sample sample{text_of(line, {"prompt"}), text_of(line, {"expected", "answer", "ground_truth"}), {}, {}};
  const std::string measure = text_of(line, {"measure"});
  if (line.contains("target")) {
    sample.texts.push_back({"target", text_of(line, {"target"}), measure, number_of(line, "value")});
  } else if (line.contains("chosen")) {
    for (const char* side : {"chosen", "rejected"})
      sample.texts.push_back(
          {side, text_of(line, {side}), measure, number_of(line, (std::string(side) + "_value").c_str())});
  } else {
    sample.texts.push_back(
        {"completion", text_of(line, {"completion", "response"}), "reward", number_of(line, "reward")});
  }
  if (line.contains("model_answer")) sample.model_answer = text_of(line, {"model_answer"});
  return sample;
}

bool is_held_out(const fs::path& path) { return path.stem().string().starts_with("eval"); }

// Reads a file of samples. A last line without its newline comes from a run that is still writing, or was killed: it is
// left out.
SampleFile read_samples(const fs::path& path) {
  SampleFile file;
  file.held_out = is_held_out(path);
  const std::string stem = path.stem().string();  // step-000010
  file.step = std::atoll(stem.substr(stem.find_first_of("0123456789")).c_str());
  const std::string text = base::read_file(path);
  size_t begin = 0;
  for (int64_t number = 1; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (!line.empty()) file.samples.push_back(parse_sample(base::parse_ordered_json(line, path.string(), number)));
    begin = end + 1;
  }
  return file;
}

// Returns the files in order of their names, which is that of their steps. Where there are samples of held-out prompts
// (eval-*), which are the same at each step, only those are returned.
std::vector<fs::path> sample_files(const fs::path& directory) {
  std::vector<fs::path> files;
  if (!fs::is_directory(directory)) return files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const bool numbered = entry.path().stem().string().find_first_of("0123456789") != std::string::npos;
    if (entry.path().extension() == ".jsonl" && numbered) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (std::any_of(files.begin(), files.end(), is_held_out)) {
    std::erase_if(files, [](const fs::path& path) { return !is_held_out(path); });
  }
  return files;
}

// Parts reads parts of a run. Where `unreadable` is given, an error is added to it, and the part to `absent`.
struct Parts {
  RunData& run;
  std::vector<std::string>* unreadable;

  void read(const std::string& name, const std::function<void()>& part) const {
    try {
      part();
    } catch (const std::exception& error) {  // the JSON library throws its own for a value of another type
      if (unreadable == nullptr) throw;
      unreadable->emplace_back(error.what());
      run.absent.push_back(name + " that can be read: " + error.what());
    }
  }
};

void read_metrics_into(const fs::path& directory, RunData& run) {
  const fs::path path = directory / "metrics.jsonl";
  if (!fs::exists(path)) {
    const fs::path above = directory.has_filename() ? directory.parent_path() : directory.parent_path().parent_path();
    const bool inside = !above.empty() && fs::exists(above / "metrics.jsonl");  // of a run, as its model is
    throw base::InputError(base::expectation(
        "report", "a run's directory with metrics.jsonl", directory.string(),
        inside ? above.string() + ", which has it" : "the --output directory of a `collimate train`"));
  }
  std::vector<std::string> unreadable;
  const std::vector<base::MetricsRecord> records = base::read_metrics(path, &unreadable);
  for (const std::string& problem : unreadable)
    run.absent.push_back("a line of metrics.jsonl that cannot be read: " + problem);
  if (records.empty() && run.stopped.is_object()) {
    run.absent.emplace_back("an iteration in metrics.jsonl");
    return;
  }
  if (records.empty()) {
    throw base::InputError(
        base::expectation("report", "an iteration in " + path.string(), "none", "a run that has finished one"));
  }
  for (const base::MetricsRecord& record : records) {
    for (const auto& [name, value] : record.values) {
      if (!std::isfinite(value)) continue;
      Series& series = run.metrics[name];
      series.x.push_back(static_cast<double>(record.step));
      series.y.push_back(value);
    }
  }
  run.first_step = records.front().step;
  run.last_step = records.back().step;
  run.seconds = records.back().time_seconds;
}

SampleFiles first_and_last(const std::string& measure, const std::vector<fs::path>& files) {
  SampleFiles samples{measure, read_samples(files.front()), {}};
  if (files.size() > 1) samples.last = read_samples(files.back());
  return samples;
}

void read_samples_into(const fs::path& directory, const Parts& parts) {
  RunData& run = parts.run;
  const std::vector<fs::path> files = sample_files(directory);
  if (files.empty())
    run.absent.push_back("samples/ (reward writes them if data.eval is set)");
  else
    parts.read("samples/", [&] { run.samples = first_and_last("", files); });
  if (!fs::is_directory(directory)) return;
  for (const auto& entry : fs::directory_iterator(directory))
    if (const std::vector<fs::path> measured = sample_files(entry.path()); !measured.empty())
      parts.read("samples/" + entry.path().filename().string(),
                 [&] { run.measured.push_back(first_and_last(entry.path().filename().string(), measured)); });
  std::ranges::sort(run.measured, {}, &SampleFiles::measure);
}

}  // namespace

bool is_zero(const Series& series) {
  return std::all_of(series.y.begin(), series.y.end(), [](double y) { return std::fabs(y) < 1e-7; });
}

bool is_constant(const Series& series) {
  if (series.y.size() < 3) return false;
  return std::all_of(series.y.begin(), series.y.end(), [&](double y) { return y == series.y.front(); });
}

bool is_same(const Series& a, const Series& b) {
  constexpr double kRounding = 1e-6;
  if (a.x.size() < 2 || a.x != b.x) return false;
  return std::equal(a.y.begin(), a.y.end(), b.y.begin(), b.y.end(), [](double left, double right) {
    return std::fabs(left - right) <= kRounding * std::max(std::fabs(left), std::fabs(right));
  });
}

const Series& RunData::series(std::string_view metric) const {
  static const Series kNone;
  auto found = metrics.find(metric);
  if (found == metrics.end()) found = metrics.find(base::trl_name(metric));
  return found == metrics.end() ? kNone : found->second;
}

RunData read_run(const fs::path& directory, std::vector<std::string>* unreadable) {
  RunData run;
  const Parts parts{run, unreadable};
  run.name = fs::weakly_canonical(directory).filename().string();
  run.directory = directory.lexically_normal().string();
  run.has_model = fs::exists(directory / "model" / "config.json");
  const fs::path stopped = directory / "stopped.json";
  if (fs::exists(stopped)) parts.read("stopped.json", [&] { run.stopped = parse_file(stopped); });
  parts.read("metrics.jsonl", [&] { read_metrics_into(directory, run); });
  const auto read = [&](const char* name, const std::function<void(const fs::path&)>& part) {
    if (fs::exists(directory / name))
      parts.read(name, [&] { part(directory / name); });
    else
      run.absent.emplace_back(name);
  };
  read("summary.json", [&](const fs::path& path) {
    run.summary = parse_file(path);
    if (run.summary.is_object()) run.seconds = run.summary.value("seconds", run.seconds);
  });
  read("config.resolved.yaml", [&](const fs::path& path) {
    run.config = base::read_file(path);
    if (!run.config.empty()) run.settings = base::to_json(base::parse_yaml(run.config, path.string()));
  });
  read("trace.json", [&](const fs::path& path) { read_trace(parse_file(path), run); });
  read_samples_into(directory / "samples", parts);
  return run;
}

}  // namespace collimate::report
