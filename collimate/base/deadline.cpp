#include "collimate/base/deadline.h"

#include <algorithm>
#include <limits>

#include "collimate/base/error.h"

namespace collimate::base {

double now_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

Clock::time_point Deadline::at() const {
  COLLIMATE_CHECK(!never_);
  constexpr double kLongestSeconds = 1e8;  // three years, far from the clock's overflow
  const auto limit = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::min(limit_seconds_, kLongestSeconds)));
  return (heartbeat_ ? std::max(start_, heartbeat_->last()) : start_) + limit;
}

int Deadline::remaining_milliseconds() const {
  if (never_) return -1;
  const auto left = at() - Clock::now();
  if (left <= Clock::duration::zero()) return 0;
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min<int64_t>(whole, std::numeric_limits<int>::max()));
}

}  // namespace collimate::base
