#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collimate/tensor/arena.h"
#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// A Slot is an activation [rows, width] and the place of its gradient, both in a device's memory. The object itself
// lies in the host's part of an arena, and owns nothing.
struct Slot {
  float* value = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
  bool wanted = false;        // whether backward computes its gradient; not within a frozen prefix
  float* gradient = nullptr;  // memory is taken at its first use in backward; a parameter has it in advance
  bool written = false;       // the gradient holds something already, and the next backward adds to it
  int64_t count() const { return rows * width; }
};

// A GradientTarget is where a backward puts its contribution to a slot's gradient.
struct GradientTarget {
  float* data = nullptr;  // [rows, width]
  bool accumulate = false;
};

// A Tape records the backward of operations as closures, and runs them in reverse order. One segment of a model is one
// tape, so that the segment's gradient is complete, and may be reduced and released, before the backward of the next
// segment starts. Not thread-safe.
class Tape {
 public:
  // Takes memory for gradients of activations from `gradients`, on exec's device; the caller rewinds that arena after
  // run().
  explicit Tape(Arena& gradients, const Exec& exec = {}) : gradients_(gradients), exec_(exec) {}

  void push(std::function<void()> backward) { nodes_.push_back(std::move(backward)); }
  // Runs every closure, last first, and removes it.
  void run();

  // Returns where a backward writes a slot's gradient. The first to do so must write every element, others add.
  GradientTarget target(Slot& slot);
  // Does the same for a backward that can only add: at the first use the memory is zeroed.
  float* zeroed_target(Slot& slot);
  // Returns the gradient for the backward that consumes a slot; null when nothing flowed into it.
  static const float* gradient(const Slot& slot) { return slot.written ? slot.gradient : nullptr; }

 private:
  Arena& gradients_;
  Exec exec_;
  std::vector<std::function<void()>> nodes_;
};

// Makes a slot with memory for its values.
Slot* make_slot(Arena& arena, int64_t rows, int64_t width, bool wanted);
// Makes a slot that shares the values of another, and has a gradient of its own.
Slot* alias_slot(Arena& arena, const Slot& of);

}  // namespace collimate::tensor
