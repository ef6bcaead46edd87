#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collimate/base/immovable.h"
#include "collimate/base/log.h"

namespace collimate::base {

// "1:02:03", "4:05" or "12 s".
std::string format_duration(double seconds);

struct ProgressState {
  std::string label;
  int64_t done = 0;
  int64_t total = 0;
  int64_t first = 0;           // steps done before; they do not count for the pace
  double elapsed_seconds = 0;  // since `first`
};

// "grpo  ██████████░░░░  34/50  reward 0.61  2.1 s/it  ETA 34 s  kl 0.1": the text of a progress line, no escapes. Of
// the details, which two spaces part, the first comes before the time. `bar_columns` 0 leaves the bar out.
std::string progress_text(const ProgressState& state, std::string_view details, int bar_columns);

// This text has a bar and at most `columns` characters: a narrow terminal loses the end of the details, then the bar,
// then the time.
std::string terminal_progress_text(const ProgressState& state, std::string_view details, int columns);

// Progress of a run: one plain line that stays every `every` steps, for the first and for the last; when stderr is a
// terminal also a bar with the time left. 0: nothing. The pace of later steps leaves out the first one, which has what
// comes before it (models are set up). One thread.
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
