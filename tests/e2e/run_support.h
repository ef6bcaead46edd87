#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/recipe/train.h"
#include "tests/support/small_task.h"

namespace collimate::test {

using Metrics = std::vector<nlohmann::json>;

// Runs `text` in process; its records are in `output`.
inline recipe::TrainOutcome train_text(const std::string& text, const std::string& output,
                                       const std::vector<std::string>& sets = {}, recipe::TrainCall call = {}) {
  write_text(output + ".yaml", text);
  call.output = output;
  return recipe::train(recipe::load(output + ".yaml", sets), call);
}

inline Metrics metrics_of(const std::string& output) {
  Metrics metrics;
  for (const std::string& line : lines_of(output + "/metrics.jsonl")) metrics.push_back(nlohmann::json::parse(line));
  return metrics;
}

// Trains a small run of three iterations that is asked to stop from its beginning: it ends before its last one.
inline void train_until_stopped(const std::string& text, const std::string& output,
                                const std::vector<std::string>& sets) {
  base::StopFlag asked;
  asked.request();
  recipe::TrainCall stopped;
  stopped.stop = &asked;
  EXPECT_THROW(train_text(text, output, sets, stopped), base::StoppedError);
  EXPECT_LT(metrics_of(output).size(), 3U);
}

// Tests on the small task, which stands in a directory of theirs.
class OnSmallTask : public testing::Test {
 protected:
  explicit OnSmallTask(const std::string& directory) : scratch_(directory) { write_small_task(scratch_.path()); }

  const Scratch scratch_;
};

struct Span {
  double begin = 0;  // microseconds
  double end = 0;
};

// Returns by worker the span of one iteration from the first start to the last end of the calls of `nodes`.
inline std::map<int, Span> spans_of(const std::string& output, int iteration, const std::vector<std::string>& nodes) {
  std::map<int, Span> spans;
  const auto trace = nlohmann::json::parse(read_text(output + "/trace.json"));
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("args").at("iteration") != iteration) continue;
    if (std::find(nodes.begin(), nodes.end(), event.at("name").get<std::string>()) == nodes.end()) continue;
    const double begin = event.at("ts"), end = begin + event.at("dur").get<double>();
    const auto [span, fresh] = spans.try_emplace(event.at("pid").get<int>(), Span{begin, end});
    if (!fresh) span->second = {std::min(span->second.begin, begin), std::max(span->second.end, end)};
  }
  return spans;
}

inline std::string model_bytes(const std::string& output) { return read_text(output + "/model/model.safetensors"); }

}  // namespace collimate::test
