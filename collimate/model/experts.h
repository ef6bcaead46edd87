#pragma once

#include <vector>

#include "collimate/model/layers.h"

namespace collimate::model {

// A block's routed experts, in place of its MLP.
struct ExpertLayer {
  // Matrices of one size, one an expert that the rank has: their first parameters.
  struct Matrices {
    std::vector<int> weights;
    std::vector<int> biases;  // none, or as many
    int64_t in = 0, out = 0;
  };
  shape::Experts how;
  shape::Mlp mlp;       // of one expert
  int number = 0;       // of the model's routers
  Linear router;        // in fp32
  int correction = -1;  // of the choice; -1: none
  Matrices up, down;
  Linear shared_up, shared_down, shared_gate;  // where `how` has them
};
ExpertLayer find_experts(const Weights& weights, int segment, int number);

// stream + what the experts make of x [T, H]: as add_linear. A token's experts are added in their order, then what all
// tokens pass.
Slot* add_experts(Step& step, const ExpertLayer& layer, Slot* x, Slot* stream);

}  // namespace collimate::model
