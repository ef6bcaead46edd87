#pragma once

#include "collimate/base/error.h"
#include "collimate/model/layers.h"

namespace collimate::model {

// Returns whether a layer with this parameter, fed by x, takes part in the backward.
inline bool recorded(const Step& step, const Slot* x, int param) {
  return step.tape != nullptr && ((x != nullptr && x->wanted) || (param >= 0 && step.weights.trains(param)));
}

// Has the tape call backward(gradient of `out`), unless nobody wants that gradient or none has flowed into `out`.
template <class Backward>
void record(Step& step, const Slot* out, const Backward& backward) {
  if (step.tape == nullptr || !out->wanted) return;
  step.tape->push([=] {
    if (const float* dy = tensor::Tape::gradient(*out)) backward(dy);
  });
}

// Returns where the gradient goes of a slot that only one layer reads.
inline float* only_target(tensor::Tape& tape, Slot& slot) {
  const tensor::GradientTarget into = tape.target(slot);
  COLLIMATE_CHECK(!into.accumulate, "a slot of one reader has two");
  return into.data;
}

}  // namespace collimate::model
