#include "collimate/base/deadline.h"

#include <algorithm>
#include <limits>

#include "collimate/base/error.h"

namespace collimate::base {

namespace {

constexpr Clock::rep kNoManualTime = -1;
std::atomic<Clock::rep> manual_time{kNoManualTime};

}  // namespace

Clock::time_point Clock::now() {
  const rep manual = manual_time.load();
  return time_point(manual != kNoManualTime ? duration(manual) : std::chrono::steady_clock::now().time_since_epoch());
}

ManualClock::ManualClock() { manual_time = Clock::now().time_since_epoch().count(); }
ManualClock::~ManualClock() { manual_time = kNoManualTime; }
void ManualClock::advance(double seconds) {
  manual_time += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)).count();
}

std::chrono::steady_clock::duration nap_before(const Deadline& deadline) {
  if (manual_time.load() != kNoManualTime) return std::chrono::milliseconds(1);
  return deadline.at() - Clock::now();
}

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
