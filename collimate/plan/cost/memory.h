#pragma once

#include <string>
#include <vector>

#include "collimate/plan/cost/job.h"

namespace collimate::plan {

// A MemoryItem is an upper bound on one kind of bytes on the fullest device.
struct MemoryItem {
  const char* what;
  double bytes;
};

// A MemoryBound has what stays on a device between phases, and what a phase needs beside it: the function's own phase
// or, where that needs more, the passing of new weights.
struct MemoryBound {
  std::vector<MemoryItem> resident;
  std::vector<MemoryItem> transient;
  std::vector<MemoryItem> passing;  // empty where the function neither gives nor takes new weights
  double resident_bytes() const;
  double working_bytes() const;  // beside those while the function works
  double transient_bytes() const;
  // Returns the items that transient_bytes() sums.
  const std::vector<MemoryItem>& largest_phase() const;
  double total() const { return resident_bytes() + transient_bytes(); }
};

// Bounds the memory of a job. Items are weights, adapters, gradients, optimizer state, activations, logits, keys and
// values, the activations of a step of prefill, the logits of a round, and workspace (docs/planner.md, "What memory and
// time count"; activations after 2205.05198). ZeRO 3's gathered weights, and gradients of ZeRO 2 and 3 before they are
// scattered (in the activations' type), take two pieces (a layer or a vocabulary table) at once: one at work, one on
// its way. New weights pass between phases, when neither the keys and values nor a training's activations are there, in
// pieces of a layer's dense part, an expert or a table, cut by tp as the device's own: two at once. Keys and values are
// the pool of a generating job for `concurrent` rows per replica. Where a layout says the layers of its stages, the
// bound is that of the rank which needs most: a rank keeps the more micro-batches, the nearer it is to the first one.
MemoryBound memory_of(const Job& job, const Execution& how, const Constants& constants, double concurrent = 0);

// Returns the tokens that a replica's key-value cache holds: those of Settings::pool_tokens or else of so many rows of
// mean length, and at least one row of the longest. The cache has its size before the first row, and rows that it
// cannot hold wait or are preempted and computed again (generate/scheduler.h): whatever the lengths, no more is held.
double pool_tokens(const Job& job, double rows);
// cached_values() returns how many numbers the keys and values of one token have on one device, cached_bytes() their
// bytes.
double cached_values(const Job& job, const Execution& how);
double cached_bytes(const Job& job, const Execution& how);
// Returns the number of rows of mean length whose keys and values, and logits, fit into `free_bytes` of a device.
double concurrency(const Job& job, const Execution& how, double free_bytes);
// Returns the bytes of one device, less those that software does not get.
double usable_bytes(const DeviceKind& gpu, const Constants& constants);
// Returns the item of two lists that has most bytes; one of 0 bytes where both are empty.
template <class Item>
Item largest_item(const std::vector<Item>& a, const std::vector<Item>& b) {
  Item largest{};
  for (const auto* items : {&a, &b})
    for (const Item& item : *items)
      if (item.bytes > largest.bytes) largest = item;
  return largest;
}
// Returns "" when it fits, else what is too large: "72.1 GB on a device of 40.0 GB (36.0 usable), of which optimizer
// 48.0 GB".
std::string misfit(const MemoryBound& bound, double other_bytes, const DeviceKind& gpu, const Constants& constants);

}  // namespace collimate::plan
