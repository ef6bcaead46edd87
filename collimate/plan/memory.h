#pragma once

#include <string>
#include <vector>

#include "collimate/plan/job.h"

namespace collimate::plan {

// An upper bound on one kind of bytes on the fullest device.
struct MemoryItem {
  const char* what;
  double bytes;
};

// What stays on a device between phases, and what a phase needs beside it.
struct MemoryBound {
  std::vector<MemoryItem> resident;
  std::vector<MemoryItem> transient;
  double resident_bytes() const;
  double transient_bytes() const;
  double total() const { return resident_bytes() + transient_bytes(); }
};

// Weights, gradients, optimizer state, activations, logits, keys and values, workspace (formulas: placement.md §6.2;
// activations after 2205.05198). For a generating job `concurrent` rows per replica hold keys and values.
MemoryBound memory_of(const Job& job, const Execution& how, const Constants& constants, double concurrent = 0);

// Bytes of keys and values of one token on one device.
double cached_bytes(const Job& job, const Execution& how);
// Rows of a replica that decode at once within `free_bytes` a device; each holds its prompt and mean completion.
double concurrency(const Job& job, const Execution& how, double free_bytes);
// Of one device, less what software does not get.
double usable_bytes(const Gpu& gpu, const Constants& constants);
// "" when it fits, else what is too large: "72.1 GB on a device of 40.0 GB, of which optimizer 48.0 GB".
std::string misfit(const MemoryBound& bound, double other_bytes, const Gpu& gpu, const Constants& constants);

}  // namespace collimate::plan
