#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/golden/replay.h"

// Small goldens with a part changed, replayed as their files would be.
namespace collimate::golden {

inline const std::string kSmallGoldens = COLLIMATE_SOURCE_DIR "/tests/golden/small";

inline json read_small(const std::string& file) {
  return json::parse(std::ifstream(kSmallGoldens + "/" + file + ".json"));
}

inline std::vector<Outcome> replay_small(const json& golden) {
  return replay_golden("changed", golden, ModelShelf(kSmallGoldens));
}

inline std::vector<Outcome> replay_changed(const std::string& file, const std::function<void(json& golden)>& change) {
  json golden = read_small(file);
  change(golden);
  return replay_small(golden);
}

inline void expect_within(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.verdict, Verdict::kWithin) << line_of(outcome);
}

// Gives what the replay has for the number at `pointer`: nothing differs by more than NaN does, so the outcome names
// it. NaN when it is compared with nothing.
inline double ours_at(json golden, const std::string& pointer) {
  golden[json::json_pointer(pointer)] = std::numeric_limits<double>::quiet_NaN();
  const std::string text = replay_small(golden).at(0).text;
  const size_t end = text.find(" for nan");
  if (end == std::string::npos) {
    ADD_FAILURE() << pointer << " is not compared: " << text;
    return std::numeric_limits<double>::quiet_NaN();
  }
  const size_t begin = text.rfind(": ", end) + 2;
  return std::stod(text.substr(begin, end - begin));
}

}  // namespace collimate::golden
