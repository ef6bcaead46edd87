#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "collimate/base/immovable.h"

// Hooks for tests. A program links tests/support/fault.cpp, which has them, or no_fault.cpp, in which they do nothing:
// `collimate` and the benchmarks link the latter, test programs and `collimate-hooked` the former.
namespace collimate::base {

bool has_test_hooks();
// Says which COLLIMATE_TEST_* are set and whether they act in this program; "" when none is.
std::string test_hook_warning();

// Marks a place where a test may kill the process: COLLIMATE_TEST_KILL_AT="checkpoint.before_rename:3" ends it by
// SIGKILL on the third passage. Without the variable (read once) it costs one load. Thread-safe.
void fault_point(std::string_view place);

// A wrong number for tests: COLLIMATE_TEST_NUDGE_AT="rollout.log_prob" takes one ulp from every value that passes that
// place, "linear@decode" from those that pass it in that phase; else the value is as it was. With "/bf16" at the end it
// is an ulp of bf16, for what a later kernel rounds to that. Thread-safe.
float fault_value(std::string_view place, float value);

// Takes one ulp, at that place, from the largest value of each row that a kernel wrote, [rows, width] with `stride`
// floats between rows. Elsewhere it costs a load. Thread-safe.
void fault_rows(std::string_view place, float* values, int64_t rows, int64_t width, int64_t stride);

// Whether what passes that place on this thread is nudged, for what has to prepare for it. Else it costs a load.
bool nudged(std::string_view place);

// Says that `count` of something are there or happen, or asks whether there may be so many: a test hears it, and what
// it answers is taken. Else it is `count`. Thread-safe.
int64_t fault_count(std::string_view place, int64_t count);

// While it lives, this thread works in that phase of a model: prefill, decode, scoring or training. What other threads
// do for it is in none. Inner phases replace outer ones.
class FaultPhase : private Immovable {
 public:
  explicit FaultPhase(std::string_view name);  // which outlives it
  ~FaultPhase();

 private:
  std::string_view outer_;
};

// How many of `wanted` bytes may be written now; called by whatever writes a run's files. COLLIMATE_TEST_DISK_BYTES: a
// full disk after so many. Thread-safe.
size_t allowed_disk_bytes(size_t wanted);

// Whether COLLIMATE_TEST_REPARSE=1 asks for it: every run of this process builds its workers from reparsed text and
// parses every message again. Read once. InputError for another value.
bool reparse_every_run();

}  // namespace collimate::base
