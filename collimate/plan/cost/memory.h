#pragma once

#include <string>
#include <vector>

#include "collimate/plan/cost/job.h"

namespace collimate::plan {

// An upper bound on one kind of bytes on the fullest device.
struct MemoryItem {
  const char* what;
  double bytes;
};

// The bound has what stays on a device between phases, and what a phase needs beside it: the function's own or, where
// that is more, the passing of new weights.
struct MemoryBound {
  std::vector<MemoryItem> resident;
  std::vector<MemoryItem> transient;
  std::vector<MemoryItem> passing;  // empty where the function neither gives nor takes new weights
  double resident_bytes() const;
  double working_bytes() const;  // beside them while the function works
  double transient_bytes() const;
  // The items of transient_bytes().
  const std::vector<MemoryItem>& largest_phase() const;
  double total() const { return resident_bytes() + transient_bytes(); }
};

// Weights, adapters, gradients, optimizer state, activations, logits, keys and values, the activations of a step of
// prefill and the logits of a round, workspace (docs/planner.md, "What memory and time count"; activations after
// 2205.05198); what ZeRO 3 gathers and ZeRO 2 and 3 have of gradients, in the activations' type, before they are
// scattered, two pieces (a layer or a vocabulary table) at once: one at work, one on its way. New weights pass between
// phases, when neither the keys and values nor a training's activations are there, in pieces of a layer's dense part,
// an expert or a table, cut by tp as the device's own: two at once. Keys and values are the pool of a generating job
// for `concurrent` rows per replica.
MemoryBound memory_of(const Job& job, const Execution& how, const Constants& constants, double concurrent = 0);

// Tokens that a replica's pool of keys and values holds: those of so many rows of mean length, and at least one row of
// the longest. A pool has its size before the first row, and rows that it cannot hold wait or are preempted and
// computed again (generate/scheduler.h): whatever the lengths, no more is held.
double pool_tokens(const Job& job, double rows);
// Numbers in the keys and values of one token on one device, and their bytes.
double cached_values(const Job& job, const Execution& how);
double cached_bytes(const Job& job, const Execution& how);
// Rows of mean length for which a pool of `free_bytes` a device is made.
double concurrency(const Job& job, const Execution& how, double free_bytes);
// Gives the bytes of one device, less what software does not get.
double usable_bytes(const DeviceKind& gpu, const Constants& constants);
// The item of two lists that has most bytes; of 0 where both are empty.
template <class Item>
Item largest_item(const std::vector<Item>& a, const std::vector<Item>& b) {
  Item largest{};
  for (const auto* items : {&a, &b})
    for (const Item& item : *items)
      if (item.bytes > largest.bytes) largest = item;
  return largest;
}
// "" when it fits, else what is too large: "72.1 GB on a device of 40.0 GB, of which optimizer 48.0 GB".
std::string misfit(const MemoryBound& bound, double other_bytes, const DeviceKind& gpu, const Constants& constants);

}  // namespace collimate::plan
