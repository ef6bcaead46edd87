#pragma once

#include <memory>
#include <vector>

#include "collimate/model/model.h"
#include "collimate/model/router_choices.h"
#include "collimate/model/router_notes.h"
#include "collimate/model/step_input.h"
#include "collimate/tensor/tape.h"

namespace collimate::model {

struct ForwardRecord::Impl {
  struct Segment {
    tensor::Slot* input = nullptr;   // null for the embedding
    tensor::Slot* output = nullptr;  // with Recompute::kFull null, except in the run's last segment
    std::unique_ptr<tensor::Tape> tape;
  };
  std::unique_ptr<StepInput> input;
  int run = 0;  // which of the rank's runs
  Recompute recompute = Recompute::kNone;
  std::unique_ptr<tensor::Arena> activations;
  std::unique_ptr<RouterNotes> routers;  // null unless training asks for it, as for the choices
  std::unique_ptr<RouterChoices> choices;
  std::vector<Segment> segments;
  std::vector<Weights::Held> head;  // holds of the head's segments, which its backward reads
  // `activations` goes back to this pool.
  std::shared_ptr<std::vector<std::unique_ptr<tensor::Arena>>> pool;

  ~Impl() {
    segments.clear();
    if (pool == nullptr || activations == nullptr) return;
    activations->reset();
    pool->push_back(std::move(activations));
  }
};

}  // namespace collimate::model
