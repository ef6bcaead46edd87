// Programs that are not for tests link this file, so no environment variable and no hook changes what they do.
#include "collimate/base/fault.h"

namespace collimate::base {

bool has_test_hooks() { return false; }

void fault_point(std::string_view) {}

bool nudged(std::string_view) { return false; }

int64_t fault_count(std::string_view, int64_t count) { return count; }

float fault_value(std::string_view, float value) { return value; }

void fault_rows(std::string_view, float*, int64_t, int64_t, int64_t) {}

FaultPhase::FaultPhase(std::string_view) {}
// The destructor that tests link (tests/support/fault.cpp) has work to do, so that this one cannot be trivial.
FaultPhase::~FaultPhase() {}  // NOLINT(modernize-use-equals-default)

size_t allowed_disk_bytes(size_t wanted) { return wanted; }

bool reparse_every_run() { return false; }

}  // namespace collimate::base
