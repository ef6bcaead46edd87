#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collimate/cli/verbs.h"

namespace collimate::cli {

// Runs `collimate bench quickstart`: a small policy learns to sort digits, first from demonstrations, then by GRPO.
// --single runs one seed and does not repeat runs that have ended. Otherwise it runs three seeds afresh, each with the
// controls (shuffled rewards, learning rate 0, SFT continued for at least GRPO's time), and prints a table. Throws
// InputError when a call that runs afresh finds other files in --output. Returns 1 when a bound is missed (see
// missed_bounds); bounds are checked only for runs of the default length.
int bench_quickstart(const Arguments& arguments);

// A QuickstartResult holds the held-out accuracy before and after a run, in percent, and the run's seconds.
struct QuickstartResult {
  double before = 0;
  double after = 0;
  double seconds = 0;
};

// Lists the bounds that GRPO's run misses: accuracy rises by at least 25 points and is at least 70 % at the end.
std::vector<std::string> missed_bounds(const QuickstartResult& grpo);
// Lists the bounds that the controls miss: with shuffled rewards and with learning rate 0 accuracy moves by at most 3
// points, and continued SFT ends at least 10 points below GRPO.
std::vector<std::string> missed_bounds(const QuickstartResult& grpo, const QuickstartResult& shuffled,
                                       const QuickstartResult& rate_zero, const QuickstartResult& sft_continued);

struct QuickstartTask {
  int64_t digits = 6;
  int64_t demonstrations = 120;
  int64_t problems = 20000;  // for training by reward
  int64_t held_out = 500;    // for measuring accuracy
  int64_t validation = 500;  // demonstrations that say when SFT stops
  uint64_t seed = 1;
};

// Writes the task below `directory`: demonstrations.jsonl, problems.jsonl, held_out.jsonl, validation.jsonl (all
// disjoint) and start/ (config.json and tokenizer of a small Llama, no weights). Equal tasks give equal bytes.
void write_quickstart_task(const QuickstartTask& task, const std::string& directory);

}  // namespace collimate::cli
