#pragma once

#include <cstdint>
#include <string>

namespace collimate::train {

// Learning rate by optimizer step, as in Hugging Face's schedulers: `warmup` steps rise linearly from 0 (step 0 has
// rate 0), then the shape runs to `total` steps.
struct LrSchedule {
  std::string name = "constant";  // constant linear cosine cosine_with_min
  double peak = 1e-6;
  int64_t warmup = 0;
  int64_t total = 0;           // needed by every shape but constant
  double minimum_ratio = 0.0;  // floor of cosine_with_min, as a part of the peak
};

// Rate of the 0-based `step`. InputError for an unknown name, naming the known ones, or a missing total.
double learning_rate(const LrSchedule& schedule, int64_t step);

}  // namespace collimate::train
