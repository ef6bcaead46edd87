#include "collimate/tensor/operation_times.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/tensor/operations.h"

namespace collimate::tensor {
namespace {

#define COLLIMATE_NAME(name) #name,
constexpr const char* kNames[] = {COLLIMATE_OPERATIONS(COLLIMATE_NAME)};
#undef COLLIMATE_NAME

thread_local OperationTimes* g_current = nullptr;

}  // namespace

OperationTimes::OperationTimes() : times_(std::size(kNames)) {
  COLLIMATE_CHECK(g_current == nullptr);
  g_current = this;
}

OperationTimes::~OperationTimes() { g_current = nullptr; }

OperationTimes* OperationTimes::current() { return g_current; }

std::vector<OperationTime> OperationTimes::take() {
  std::vector<OperationTime> called;
  for (size_t place = 0; place < times_.size(); ++place) {
    OperationTime time = std::exchange(times_[place], {});
    if (time.calls == 0) continue;
    time.name = kNames[place];
    called.push_back(std::move(time));
  }
  return called;
}

OperationTimer::OperationTimer(size_t place)
    : times_(*g_current),
      place_(place),
      outer_inner_seconds_(std::exchange(times_.inner_seconds_, 0.0)),
      begin_seconds_(base::now_seconds()) {}

OperationTimer::~OperationTimer() {
  const double seconds = base::now_seconds() - begin_seconds_;
  OperationTime& time = times_.times_[place_];
  ++time.calls;
  time.total_seconds += seconds;
  time.self_seconds += seconds - times_.inner_seconds_;
  times_.inner_seconds_ = outer_inner_seconds_ + seconds;
}

}  // namespace collimate::tensor
