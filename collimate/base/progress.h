#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collimate/base/log.h"

namespace collimate::base {

// "1:02:03", "4:05" or "12 s".
std::string format_duration(double seconds);

// "grpo  ███████░░░  34/50  reward 0.61  2.1 s/it  ETA 0:34": the text of a progress line, no escapes. `width` columns
// of bar; 0 leaves the bar out.
std::string progress_text(std::string_view label, int64_t done, int64_t total, double elapsed_seconds,
                          std::string_view details, int width);

// Progress of a run: a bar with the time left when stderr is a terminal, else a plain line per update. One thread.
class Progress {
 public:
  // `first` steps were done before (a resumed run); they do not count for the speed.
  Progress(std::string label, int64_t total, int64_t first = 0);
  ~Progress();  // removes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(int64_t done, std::string_view details);

 private:
  std::string label_;
  int64_t total_;
  int64_t first_;
  double start_seconds_;
  bool terminal_;
};

}  // namespace collimate::base
