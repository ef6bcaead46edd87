#pragma once

#include <cstdint>
#include <string>

namespace collimate::train {

// Says the learning rate by optimizer step, as in Hugging Face's schedulers: in `warmup` steps it rises linearly from 0
// (step 0 has rate 0), then it follows the named shape up to `total` steps.
struct LrSchedule {
  std::string name = "constant";  // or linear, cosine, cosine_with_min
  double peak = 1e-6;
  int64_t warmup = 0;
  int64_t total = 0;           // needed by every shape but constant
  double minimum_ratio = 0.0;  // floor of cosine_with_min, as a part of the peak
};

// Returns the rate of the 0-based `step`. Behind the warm-up it throws InputError for an unknown name, naming the known
// ones, and for a total that is missing or not above `warmup`.
double learning_rate(const LrSchedule& schedule, int64_t step);

}  // namespace collimate::train
