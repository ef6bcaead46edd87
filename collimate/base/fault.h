#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "collimate/base/immovable.h"

// This file has hooks for tests. Test programs and `collimate-hooked` link tests/support/fault.cpp, which implements
// them; `collimate` and the benchmarks link no_fault.cpp, in which they do nothing.
namespace collimate::base {

bool has_test_hooks();
// Returns a warning that says which COLLIMATE_TEST_* variables are set and whether they act in this program, or "" when
// none is set.
std::string test_hook_warning();

// Marks a place where a test may kill the process: COLLIMATE_TEST_KILL_AT="checkpoint.before_rename:3" ends it by
// SIGKILL when it passes that place for the third time. Without the variable (read once) a call costs one load.
// Thread-safe.
void fault_point(std::string_view place);

// Returns `value`, or a wrong number for tests: COLLIMATE_TEST_NUDGE_AT="rollout.log_prob" takes one ulp from every
// value that passes that place, and "linear@decode" from the values that pass "linear" in the phase "decode"
// (FaultPhase). With "/bf16" at the end it takes an ulp of bf16, for values that a later kernel rounds to bf16.
// Thread-safe.
float fault_value(std::string_view place, float value);

// Takes one ulp from the largest value of each row that a kernel wrote, [rows, width] with `stride` floats between the
// beginnings of rows, where COLLIMATE_TEST_NUDGE_AT names this place. Otherwise it changes nothing. Thread-safe.
void fault_rows(std::string_view place, float* values, int64_t rows, int64_t width, int64_t stride);

// Says whether values that pass that place on this thread are nudged, for code that has to prepare for it.
bool nudged(std::string_view place);

// Tells a test that there are `count` of something, or asks whether there may be so many, and returns the test's
// answer. Without a test that listens it returns `count`. Thread-safe.
int64_t fault_count(std::string_view place, int64_t count);

// While a FaultPhase lives, its thread works in that phase of a model: prefill, decode, scoring or training. Other
// threads that work for it are in no phase. Inner phases replace outer ones.
class FaultPhase : private Immovable {
 public:
  explicit FaultPhase(std::string_view name);  // the text of `name` must outlive this
  ~FaultPhase();

 private:
  std::string_view outer_;
};

// Returns how many of `wanted` bytes may be written now. Code that writes a run's files calls it.
// COLLIMATE_TEST_DISK_BYTES acts as a disk that is full after so many bytes. Thread-safe.
size_t allowed_disk_bytes(size_t wanted);

// Says whether every run of this process is to build its workers from reparsed text and to parse every message again,
// which COLLIMATE_TEST_REPARSE=1 asks for. The variable is read once. Throws InputError for another value.
bool reparse_every_run();

}  // namespace collimate::base
