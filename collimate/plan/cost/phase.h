#pragma once

#include "collimate/base/fields.h"
#include "collimate/plan/cost/decode.h"
#include "collimate/plan/cost/job.h"
#include "collimate/plan/cost/memory.h"

namespace collimate::plan {

// PhaseTime has the seconds of one function over an iteration's rows, by cause.
struct PhaseTime {
  double compute = 0;             // arithmetic, or a layer's least time where that is longer
  double memory = 0;              // decoding: weights, keys and values through memory, or longer arithmetic
  double latency = 0;             // decoding: launches, sampling
  double tensor = 0;              // exchanges of tensor, expert and context parallelism, sends to the next stage
  double bubble = 0;              // idle pipeline stages
  double data = 0;                // gradients and ZeRO's gathers that are not hidden
  double optimizer = 0;           // optimizer steps
  double fixed = 0;               // of each phase, whatever its rows
  double prefill = 0;             // of prompts, and of preempted rows again
  double tail = 0;                // of generation, a part of the others: after four fifths of the rows are complete
  Finish finish = at_the_end(1);  // of generation: shares of the total
  double total() const { return compute + memory + latency + tensor + bubble + data + optimizer + fixed + prefill; }

  COLLIMATE_FIELDS(compute, prefill, memory, latency, tensor, bubble, data, optimizer, fixed, tail)
};

// Returns the seconds after which each part of the rows is given out.
inline Finish finish_of(const PhaseTime& time) {
  Finish seconds = at_the_end(time.total());
  for (size_t part = 0; part + 1 < kFinishParts; ++part) seconds[part] *= time.finish[part];
  return seconds;
}

// Returns the time of one function in one iteration (docs/planner.md, "What memory and time count"). `resident_bytes`
// is what other models hold on the fullest device: generation has that much less memory for keys and values.
PhaseTime phase_time(const Job& job, const Execution& how, const Constants& constants, double resident_bytes = 0);

PhaseTime score_time(const Job& job, const Execution& how, const Constants& constants);
PhaseTime train_time(const Job& job, const Execution& how, const Constants& constants);
PhaseTime generate_time(const Job& job, const Execution& how, const Constants& constants, double resident_bytes);
// Returns the number of rows of one replica that decode together.
double decoding_rows(const Job& job, const Execution& how, const Constants& constants, double resident_bytes);

// Returns the seconds in which weights go from the job that trains them, as `from` has cut them, to one that uses them
// as `to` has, on the same devices or on others (2409.19256, table 2: zero-redundancy gather within shared devices;
// else over the network, all lanes at once, each as fast as the slower of its two ends).
double transfer_seconds(const Job& trains, const Execution& from, const Job& uses, const Execution& to,
                        bool same_devices, const Constants& constants);

}  // namespace collimate::plan
