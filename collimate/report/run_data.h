#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::report {

// A Series is one metric over the run: x is the step, ascending, and y the value. A value that is not finite or absent
// has no point.
struct Series {
  std::vector<double> x;
  std::vector<double> y;

  bool empty() const { return x.empty(); }
};

// Returns whether all values are below 1e-7 in size, as the loss of an on-policy update is, or there are none.
bool is_zero(const Series& series);
// Returns whether there are at least three steps, all with the same number.
bool is_constant(const Series& series);
// Returns whether both have the same steps, at least two, and the same values but for rounding: one fact under two
// names.
bool is_same(const Series& a, const Series& b);

// A SampleText is a text that a sample has beside its prompt. Completions are drawn anew in each file. Texts of the
// data (a target, a chosen and a rejected answer) stay, and only their values change.
struct SampleText {
  std::string label;  // "completion", "target", "chosen", "rejected"
  std::string text;
  std::string measure;  // what the value is: "reward", "loss", …
  double value;         // NaN where the line has none
};

// A Sample is one line of samples/*.jsonl.
struct Sample {
  std::string prompt;
  std::string expected;  // "" where the line has none
  std::vector<SampleText> texts;
  std::optional<std::string> model_answer;  // what the model itself answers, beside texts of the data
};

struct SampleFile {
  int64_t step = 0;
  bool held_out = false;        // from an evaluation; else from training
  std::vector<Sample> samples;  // in file order
};

// SampleFiles has the first and the last file of samples; the last one is empty when there is only one.
struct SampleFiles {
  std::string measure;  // the evaluation.measure whose folder they are in; "" for the run's own
  SampleFile first, last;
};

// A TraceEvent is a complete event of trace.json. Times are seconds from the first event that was kept.
struct TraceEvent {
  std::string name;
  std::string lane;  // the worker's name, with the thread where it has several
  double begin_seconds = 0;
  double end_seconds = 0;
};

// RunData is what a run's directory holds, read once. Only metrics are required.
struct RunData {
  std::string name;  // of the directory
  std::map<std::string, Series, std::less<>> metrics;
  int64_t first_step = 0;
  int64_t last_step = 0;
  double seconds = 0;  // of the whole run, as its summary says, else until the last step
  nlohmann::ordered_json summary;
  nlohmann::ordered_json stopped;  // what stopped.json says: why the run did not come to its end; null without it
  std::string config;              // the text of config.resolved.yaml
  nlohmann::json settings;         // config.resolved.yaml as JSON; null without it
  std::string directory;           // the run's path, as it was given
  bool has_model = false;          // a model/ that can be tried
  SampleFiles samples;
  std::vector<SampleFiles> measured;  // those of each further measure that has some, by name
  std::vector<TraceEvent> trace;
  int64_t trace_iteration = -1;     // the iteration whose events were kept; -1: all
  std::vector<std::string> absent;  // names of files that are not there, and what cannot be read

  // Finds a series by verl's name, also where the run was told to use TRL's; an empty one for an unknown name.
  const Series& series(std::string_view metric) const;
};

// Reads a run's directory. Throws InputError naming the file, and the line where there is one. Where `unreadable` is
// given, what cannot be read is added to it, left out and named in `absent`.
RunData read_run(const std::filesystem::path& directory, std::vector<std::string>* unreadable = nullptr);

}  // namespace collimate::report
