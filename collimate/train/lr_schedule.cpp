#include "collimate/train/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "collimate/base/error.h"

namespace collimate::train {
namespace {

double shape_at(const LrSchedule& schedule, double progress) {
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * progress));
  if (schedule.name == "linear") return 1 - progress;
  if (schedule.name == "cosine") return cosine;
  if (schedule.name == "cosine_with_min") return schedule.minimum_ratio + (1 - schedule.minimum_ratio) * cosine;
  throw base::InputError(base::expectation("train.lr_schedule", "constant, linear, cosine or cosine_with_min",
                                           "\"" + schedule.name + "\""));
}

}  // namespace

double learning_rate(const LrSchedule& schedule, int64_t step) {
  if (step < schedule.warmup) return schedule.peak * static_cast<double>(step) / static_cast<double>(schedule.warmup);
  if (schedule.name == "constant") return schedule.peak;
  if (schedule.total <= schedule.warmup)
    throw base::InputError(base::expectation("train.lr_schedule", "more updates than those of the warm-up",
                                             fmt::format("{} and {}", schedule.total, schedule.warmup)));
  const double progress =
      static_cast<double>(step - schedule.warmup) / static_cast<double>(schedule.total - schedule.warmup);
  return schedule.peak * std::max(0.0, shape_at(schedule, std::min(progress, 1.0)));
}

}  // namespace collimate::train
