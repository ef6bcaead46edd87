#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collimate/base/immovable.h"
#include "collimate/base/log.h"

namespace collimate::base {

// Returns "1:02:03", "4:05" or "12 s".
std::string format_duration(double seconds);

struct ProgressState {
  std::string label;
  int64_t done = 0;
  int64_t total = 0;
  int64_t first = 0;           // steps done before; they do not count for the pace
  double elapsed_seconds = 0;  // since `first`
};

// Returns the text of a progress line, without escapes: "grpo  ██████████░░░░  34/50
// reward 0.61  2.1 s/it  ETA 34 s  kl 0.1". Two spaces separate the details, and the first of them comes before the
// time. `bar_columns` 0 leaves the bar out.
std::string progress_text(const ProgressState& state, std::string_view details, int bar_columns);

// Returns this text with a bar in at most `columns` characters: on a narrow terminal the end of the details is cut off
// first, then the bar, then the time.
std::string terminal_progress_text(const ProgressState& state, std::string_view details, int columns);

// Progress shows how far a run is: a plain line that stays every `every` steps, at the first and at the last step, and
// on a terminal (stderr) also a bar with the time left. With `every` 0 it shows nothing. The pace of later steps leaves
// out the first step, which includes setting up the models. Only one thread may use it.
class Progress : private Immovable {
 public:
  Progress(std::string label, int64_t total, int64_t first = 0, int64_t every = 1);
  ~Progress();  // removes the bar

  void update(int64_t done, std::string_view details);

 private:
  ProgressState state_;
  int64_t first_, every_;
  double start_seconds_;
  bool terminal_;
};

}  // namespace collimate::base
