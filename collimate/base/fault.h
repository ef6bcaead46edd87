#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace collimate::base {

// Marks a place where a test may kill the process: COLLIMATE_TEST_KILL_AT="checkpoint.before_rename:3" ends it by
// SIGKILL on the third passage. Without the variable (read once) it costs one load. Thread-safe.
void fault_point(std::string_view place);

// A wrong number for tests: COLLIMATE_TEST_NUDGE_AT="rollout.log_prob" takes one ulp from every value that passes that
// place, else the value is as it was. Thread-safe.
float fault_value(std::string_view place, float value);

// A full disk for tests: after `bytes` more, writes of our files fail with ENOSPC; nothing means no limit. Begins as
// COLLIMATE_TEST_DISK_BYTES. Thread-safe.
void limit_disk_for_tests(std::optional<int64_t> bytes);
// How many of `wanted` bytes may be written now; called by whatever writes a run's files.
size_t allowed_disk_bytes(size_t wanted);

}  // namespace collimate::base
