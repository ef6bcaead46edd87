#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "collimate/base/immovable.h"

// Tests tell this to the hooks of base/fault.h, beside the variables COLLIMATE_TEST_*.
namespace collimate::base {

// Does as COLLIMATE_TEST_NUDGE_AT, for tests in one process; "" is nowhere. Not to be called while others compute.
void nudge_for_tests(std::string_view where);

// A full disk: after `bytes` more, writes of our files fail with ENOSPC; nothing means no limit. Begins as
// COLLIMATE_TEST_DISK_BYTES. Thread-safe.
void limit_disk_for_tests(std::optional<int64_t> bytes);

// While it lives, runs that begin in this process are reparsed, as with COLLIMATE_TEST_REPARSE=1.
class Reparsing : private Immovable {
 public:
  Reparsing();
  ~Reparsing();
};

// While it lives, `answer` is what fault_count() gives, on any thread; an inner one replaces outer ones. It ends when
// no thread is in an answer: one that a run has abandoned may still count.
class CountAnswers : private Immovable {
 public:
  using Answer = std::function<int64_t(std::string_view place, int64_t count)>;
  explicit CountAnswers(Answer answer);
  ~CountAnswers();

 private:
  const Answer answer_;
  const Answer* const outer_;
};

}  // namespace collimate::base
