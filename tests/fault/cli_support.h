#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/base/deadline.h"
#include "tests/support/host/run_command.h"
#include "tests/support/small_task.h"

namespace collimate::test {

// Runs the command to its end, or for two minutes.
inline host::CommandResult run_words(std::vector<std::string> command, const Environment& environment) {
  host::ChildOptions options;
  options.command = std::move(command);
  options.environment = environment;
  return host::run_command(options, "", base::Deadline::after(120));
}

// Does the same with the program `collimate` in front.
inline host::CommandResult run_collimate(std::vector<std::string> words, const Environment& environment = {}) {
  words.insert(words.begin(), collimate_program(environment));
  return run_words(std::move(words), environment);
}

inline std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const size_t begin = text.find_last_of('\n', end);
  return text.substr(begin + 1, end - begin);
}

// `text` with the word in place of each match of the pattern: uids, hashes, files that a run chooses.
std::string with_word(const std::string& text, const std::string& pattern, const std::string& word);

// The lines of metrics.jsonl without what depends on the clock or the machine.
inline std::vector<std::string> lasting_metrics(const std::string& output) {
  std::vector<std::string> lines;
  for (const std::string& line : lines_of(output + "/metrics.jsonl")) {
    nlohmann::ordered_json lasting;
    const auto record = nlohmann::ordered_json::parse(line);
    for (const auto& [name, value] : record.items()) {
      bool passing = name == "time_seconds";
      for (const char* family : {"timing_s/", "perf/", "memory/"}) passing = passing || name.starts_with(family);
      if (!passing) lasting[name] = value;
    }
    lines.push_back(lasting.dump());
  }
  return lines;
}

}  // namespace collimate::test
