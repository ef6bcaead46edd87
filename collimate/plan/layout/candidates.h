#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collimate/plan/cost/phase.h"

namespace collimate::plan {

// One way to run a job, and what it costs.
struct Candidate {
  Execution how;
  double seconds = 0;
  Finish finish = {};          // seconds after which it has given out so many of its rows
  double resident_bytes = 0;   // of the fullest device, between phases
  double transient_bytes = 0;  // beside them while it runs
};

// Returns whether `a`, a Candidate or what is made of one, is no larger than `b` in anything that counts.
template <class C>
bool no_worse(const C& a, const C& b) {
  if (a.seconds > b.seconds || a.resident_bytes > b.resident_bytes || a.transient_bytes > b.transient_bytes)
    return false;
  for (size_t part = 0; part < kFinishParts; ++part)
    if (a.finish[part] > b.finish[part]) return false;
  return true;
}

// Enumeration may use this space. Fixed sizes (0: free) contradict the devices with an InputError.
struct SearchSpace {
  int tp = 0, pp = 0, ep = 0, zero = -1;
  int cp = 0;  // of what does not generate
  int64_t micro_batch = 0;
  bool recompute = true;  // may be used
  bool offload = true;
  bool leanest = true;  // also recompute and off-load where it fits without: slower, but of less memory
  // Each rank holds all of the model's weights and plans its own micro-batches: layouts of dp, and of ZeRO 1 and 2.
  bool whole = false;
  bool recomputes = false;   // then: whether its training does
  bool selective = false;    // or does so of attention and activations
  bool offloads = false;     // then: whether its optimizer is off the device
  bool even_stages = false;  // pp any divisor of the layers, else powers of two
  bool cut_rows = false;     // cp for rows of any length
  int sum_chunks = 0;        // tp divides these; 0: any tp
  int64_t lora_rank = 0;
  double other_bytes = 0;  // that other models hold while the job runs
};

// Every layout of a job that divides its devices and model: tp within a node, pp over layers, ep for experts, ZeRO 1
// to 3, cp where rows are long, recompute, off-loaded optimizer, micro-batches. Those that do not fit are left out; the
// reason of the leanest one is in `why` when nothing fits. In order of seconds.
std::vector<Candidate> enumerate_candidates(const Job& job, const SearchSpace& space, const Constants& constants,
                                            std::string* why = nullptr);
// The fastest, or nothing.
std::optional<Candidate> fastest(const Job& job, const SearchSpace& space, const Constants& constants,
                                 std::string* why = nullptr);

}  // namespace collimate::plan
