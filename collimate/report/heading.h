#pragma once

#include <string>

#include "collimate/report/run_data.h"

namespace collimate::report {

// A Heading tells in words what a run was, by its summary and config. Fields on which both are silent are "".
struct Heading {
  std::string recipe;   // "SFT", "Reward model"
  std::string model;    // "stories260k-llama/hf-llama": the last two parts of its path
  std::string data;     // "train.jsonl", or several joined by " and "
  std::string ended;    // when it ended or was stopped: "2026-11-24 19:36 UTC"
  std::string command;  // that tries the trained model

  std::string title(const std::string& otherwise) const;  // "SFT of … on …"
};
Heading heading_of(const RunData& run);

// Returns the command that tries the model of a run of this recipe; "" where there is none. `generates` is as in
// summary.json.
std::string trial_command(const std::string& recipe, bool generates, const std::string& run);

// Draws the top of a run's page: title, facts, command.
std::string draw_heading(const RunData& run);

}  // namespace collimate::report
