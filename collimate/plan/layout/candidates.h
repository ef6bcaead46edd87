#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collimate/plan/cost/phase.h"

namespace collimate::plan {

// A Candidate is one way to run a job, with its costs.
struct Candidate {
  Execution how;
  double seconds = 0;
  Finish finish = {};          // seconds after which it has given out each part of its rows
  double resident_bytes = 0;   // of the fullest device, between phases
  double transient_bytes = 0;  // beside those while it runs
};

// Returns whether `a`, a Candidate or of a derived type, is no larger than `b` in seconds, bytes and every part of its
// Finish.
template <class C>
bool no_worse(const C& a, const C& b) {
  if (a.seconds > b.seconds || a.resident_bytes > b.resident_bytes || a.transient_bytes > b.transient_bytes)
    return false;
  for (size_t part = 0; part < kFinishParts; ++part)
    if (a.finish[part] > b.finish[part]) return false;
  return true;
}

// SearchSpace says which layouts enumerate_candidates() may use. Sizes of 0, and ZeRO stage -1, are free.
struct SearchSpace {
  int tp = 0, pp = 0, ep = 0, zero = -1;
  int cp = 0;                   // of functions that do not generate; where it is set, ranks gather keys and values
  int virtual_stages = 1;       // stages of each rank, where there are several ranks
  std::vector<int64_t> stages;  // layers of each, where there are so many; empty: equal ones
  int64_t micro_batch = 0;
  bool recompute = true;  // may be used
  bool offload = true;
  bool leanest = true;  // also recompute and off-load what fits without: slower, with less memory
  // If `whole`, each rank holds all of the model's weights and plans its own micro-batches: only dp and ZeRO 0 to 2
  // remain.
  bool whole = false;
  bool recomputes = false;   // if whole: whether training recomputes everything
  bool selective = false;    // or recomputes attention and activations only
  bool offloads = false;     // if whole: whether the optimizer is off the device
  bool even_stages = false;  // pp: any divisor of the layers up to 64, else powers of two
  bool cut_rows = false;     // cp may cut rows of any length
  int sum_chunks = 0;        // tp has to divide these; 0: any tp may be used
  int64_t lora_rank = 0;
  double other_bytes = 0;  // that other models hold while the job runs
};

// Returns, in order of seconds, every layout of a job that divides its devices and model: tp within a node, pp over
// layers, ep for experts, ZeRO 1 to 3, cp where rows are long, recompute, off-loaded optimizer, micro-batches. Layouts
// that do not fit are left out; when none fits, `why` says what the leanest one needs. Throws InputError where fixed tp
// and pp do not divide the devices.
std::vector<Candidate> enumerate_candidates(const Job& job, const SearchSpace& space, const Constants& constants,
                                            std::string* why = nullptr);
// Returns the fastest candidate, or nothing where none fits.
std::optional<Candidate> fastest(const Job& job, const SearchSpace& space, const Constants& constants,
                                 std::string* why = nullptr);

}  // namespace collimate::plan
