#pragma once

#include <cstdint>
#include <string>

#include "collimate/cli/verbs.h"

namespace collimate::cli {

// `collimate bench quickstart`: a small policy learns to sort digits, first from demonstrations, then by GRPO. With
// --single one seed, where runs that have ended are not repeated; otherwise three seeds and the controls (shuffled
// rewards, learning rate 0, SFT continued for at least GRPO's time), run afresh, and a table. InputError when --output
// holds other files.
int bench_quickstart(const Arguments& arguments);

struct QuickstartTask {
  int64_t digits = 6;
  int64_t demonstrations = 120;
  int64_t problems = 20000;  // to train on by reward
  int64_t held_out = 500;    // to measure on
  int64_t validation = 500;  // demonstrations that say when SFT stops
  uint64_t seed = 1;
};

// Writes the task below `directory`: demonstrations.jsonl, problems.jsonl, held_out.jsonl, validation.jsonl (all
// disjoint) and start/ (config.json and tokenizer of a small Llama, no weights). Equal tasks give equal bytes.
void write_quickstart_task(const QuickstartTask& task, const std::string& directory);

}  // namespace collimate::cli
