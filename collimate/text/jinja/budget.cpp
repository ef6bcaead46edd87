#include "collimate/text/jinja/budget.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "collimate/base/fault.h"
#include "collimate/text/jinja/value.h"

namespace collimate::text::jinja {
namespace {

constexpr int64_t kWhole = int64_t{512} << 20;
thread_local size_t left = std::numeric_limits<size_t>::max();

}  // namespace

Budget::Budget() : outer_(std::exchange(left, static_cast<size_t>(base::fault_count("template.budget", kWhole)))) {}
Budget::~Budget() { left = outer_; }

Level::Level(int& levels) : levels_(levels) {
  if (levels >= kMostLevels) refuse(fmt::format("at most {} levels of calls and expressions", kMostLevels), "more");
  ++levels_;
}

void charge(size_t cost) {
  expect_room(cost, 1);
  left -= cost;
}

void expect_room(size_t count, size_t each) {
  if (each != 0 && count > left / each) refuse("at most 512 MiB of texts, lists and steps", "more");
}

}  // namespace collimate::text::jinja
