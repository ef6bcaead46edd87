#include "collimate/tensor/tape.h"

#include <new>

#include "collimate/base/error.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::tensor {

void Tape::run() {
  while (!nodes_.empty()) {
    const std::function<void()> backward = std::move(nodes_.back());
    nodes_.pop_back();
    backward();
  }
}

GradientTarget Tape::target(Slot& slot) {
  COLLIMATE_CHECK(slot.wanted);
  if (slot.gradient == nullptr) slot.gradient = gradients_.take(slot.count());
  const bool accumulate = slot.written;
  slot.written = true;
  return {slot.gradient, accumulate};
}

float* Tape::zeroed_target(Slot& slot) {
  const GradientTarget into = target(slot);
  if (!into.accumulate) zero(exec_, slot.count(), into.data);
  return into.data;
}

Slot* make_slot(Arena& arena, int64_t rows, int64_t width, bool wanted) {
  Slot* slot = new (arena.take_host(sizeof(Slot))) Slot;
  slot->value = arena.take(rows * width);
  slot->rows = rows;
  slot->width = width;
  slot->wanted = wanted;
  return slot;
}

Slot* alias_slot(Arena& arena, const Slot& of) {
  return new (arena.take_host(sizeof(Slot))) Slot{of.value, of.rows, of.width, of.wanted};
}

}  // namespace collimate::tensor
