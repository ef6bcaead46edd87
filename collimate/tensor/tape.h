#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collimate/tensor/arena.h"
#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// An activation [rows, width] and the place of its gradient, both of them on a device. Lives in the host's part of an
// arena; owns nothing.
struct Slot {
  float* value = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
  bool wanted = false;        // does a gradient flow into it? A frozen prefix does not want one
  float* gradient = nullptr;  // given at its first use in backward; given in advance for a parameter
  bool written = false;       // holds something already: the next backward adds
  int64_t count() const { return rows * width; }
};

// A GradientTarget is where a backward puts its contribution to a slot's gradient.
struct GradientTarget {
  float* data = nullptr;  // [rows, width]
  bool accumulate = false;
};

// The backward of what ran while recording, as closures in reverse order. One segment of a model is one tape, so that
// its gradient is complete, and may be reduced and released, before the next segment's backward starts. Not
// thread-safe.
class Tape {
 public:
  // Gradients of activations are taken from `gradients`, on the exec's device; the caller rewinds it after run().
  explicit Tape(Arena& gradients, const Exec& exec = {}) : gradients_(gradients), exec_(exec) {}

  void push(std::function<void()> backward) { nodes_.push_back(std::move(backward)); }
  // Runs every closure, last first, and forgets it.
  void run();

  // This is for the writer of a slot's gradient. The first writer must write every element.
  GradientTarget target(Slot& slot);
  // Does the same when the writer can only add: zeroed memory at the first use.
  float* zeroed_target(Slot& slot);
  // This is for the backward that consumes a slot; null when nothing flowed into it.
  static const float* gradient(const Slot& slot) { return slot.written ? slot.gradient : nullptr; }

 private:
  Arena& gradients_;
  Exec exec_;
  std::vector<std::function<void()>> nodes_;
};

// A new slot with memory for its values.
Slot* make_slot(Arena& arena, int64_t rows, int64_t width, bool wanted);
// A slot with the values of another, and a gradient of its own.
Slot* alias_slot(Arena& arena, const Slot& of);

}  // namespace collimate::tensor
