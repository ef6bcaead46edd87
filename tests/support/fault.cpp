#include "collimate/base/fault.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "collimate/base/error.h"
#include "tests/support/fault_control.h"

namespace collimate::base {
namespace {

struct KillPlan {
  std::string place;
  std::atomic<int64_t> passages_left{1};
};

// Null unless COLLIMATE_TEST_KILL_AT is set; lives as long as the process.
KillPlan* kill_plan() {
  static KillPlan* const plan = []() -> KillPlan* {
    const char* text = std::getenv("COLLIMATE_TEST_KILL_AT");
    if (!text || !*text) return nullptr;
    auto* made = new KillPlan;
    made->place = text;
    const size_t colon = made->place.rfind(':');
    if (colon != std::string::npos) {
      made->passages_left = std::atoll(made->place.c_str() + colon + 1);
      made->place.resize(colon);
    }
    return made;
  }();
  return plan;
}

// An empty place is nowhere, an empty phase all of them.
struct Nudge {
  std::string place, phase;
  bool bf16 = false;  // an ulp of bf16
};

Nudge nudge_at(std::string_view where) {
  constexpr std::string_view kBf16 = "/bf16";
  const bool bf16 = where.ends_with(kBf16);
  if (bf16) where.remove_suffix(kBf16.size());
  const size_t at = where.find('@');
  if (at == std::string_view::npos) return {std::string(where), "", bf16};
  return {std::string(where.substr(0, at)), std::string(where.substr(at + 1)), bf16};
}

// Lives as long as the process.
Nudge& nudge() {
  static Nudge* const chosen = [] {
    const char* text = std::getenv("COLLIMATE_TEST_NUDGE_AT");
    return new Nudge(nudge_at(text ? text : ""));
  }();
  return *chosen;
}

thread_local std::string_view current_phase;

float one_ulp_less(float value) {
  if (!nudge().bf16) return std::nextafter(value, -std::numeric_limits<float>::infinity());
  constexpr uint32_t kUlp = 0x10000, kSign = 0x80000000;
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>(value > 0 ? bits - std::min(bits, kUlp) : (bits | kSign) + kUlp);
}

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

std::atomic<int64_t>& disk_bytes_left() {
  static std::atomic<int64_t> left = [] {
    const char* text = std::getenv("COLLIMATE_TEST_DISK_BYTES");
    return text && *text ? int64_t{std::atoll(text)} : kNoLimit;
  }();
  return left;
}

std::atomic<const CountAnswers::Answer*> count_answer{nullptr};
std::atomic<int> answering{0};  // threads that may be in an answer
std::atomic<int> reparsing{0};

}  // namespace

bool has_test_hooks() { return true; }

void fault_point(std::string_view place) {
  KillPlan* plan = kill_plan();
  if (!plan || plan->place != place) return;
  if (--plan->passages_left == 0) ::kill(::getpid(), SIGKILL);
}

bool nudged(std::string_view place) {
  const Nudge& chosen = nudge();
  return !chosen.place.empty() && chosen.place == place && (chosen.phase.empty() || chosen.phase == current_phase);
}

float fault_value(std::string_view place, float value) { return nudged(place) ? one_ulp_less(value) : value; }

void fault_rows(std::string_view place, float* values, int64_t rows, int64_t width, int64_t stride) {
  if (!nudged(place)) return;
  for (int64_t r = 0; r < rows; ++r) {
    float* row = values + r * stride;
    float& largest = *std::max_element(row, row + width);
    largest = one_ulp_less(largest);
  }
}

void nudge_for_tests(std::string_view where) { nudge() = nudge_at(where); }

FaultPhase::FaultPhase(std::string_view name) : outer_(current_phase) { current_phase = name; }
FaultPhase::~FaultPhase() { current_phase = outer_; }

void limit_disk_for_tests(std::optional<int64_t> bytes) { disk_bytes_left() = bytes.value_or(kNoLimit); }

size_t allowed_disk_bytes(size_t wanted) {
  auto& left = disk_bytes_left();
  int64_t seen = left.load(std::memory_order_relaxed);
  while (seen != kNoLimit) {
    const int64_t granted = std::min<int64_t>(seen, static_cast<int64_t>(wanted));
    if (left.compare_exchange_weak(seen, seen - granted)) return static_cast<size_t>(granted);
  }
  return wanted;
}

CountAnswers::CountAnswers(Answer answer) : answer_(std::move(answer)), outer_(count_answer.exchange(&answer_)) {}
CountAnswers::~CountAnswers() {
  count_answer = outer_;
  while (answering > 0) std::this_thread::yield();
}

int64_t fault_count(std::string_view place, int64_t count) {
  ++answering;  // before the pointer is read
  const CountAnswers::Answer* answer = count_answer;
  const int64_t given = answer == nullptr ? count : (*answer)(place, count);
  --answering;
  return given;
}

Reparsing::Reparsing() { ++reparsing; }
Reparsing::~Reparsing() { --reparsing; }

bool reparse_every_run() {
  static const bool asked = [] {
    const char* word = std::getenv("COLLIMATE_TEST_REPARSE");
    if (word == nullptr || *word == '\0') return false;
    if (std::string_view(word) == "1") return true;
    throw InputError(expectation("COLLIMATE_TEST_REPARSE", "1 or nothing", word));
  }();
  return asked || reparsing > 0;
}

}  // namespace collimate::base
