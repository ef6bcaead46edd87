#pragma once

#include <vector>

#include "collimate/model/layers.h"

namespace collimate::model {

// Names the parameters of a block's routed experts, which take the place of its MLP.
struct ExpertLayer {
  // Matrices of one size, one for each expert that the rank has, by the index of each one's first parameter.
  struct Matrices {
    std::vector<int> weights;
    std::vector<int> biases;  // none, or as many as weights
    int64_t in = 0, out = 0;
  };
  shape::Experts how;
  shape::Mlp mlp;       // of one expert
  int number = 0;       // of this router among the model's
  Linear router;        // in fp32
  int correction = -1;  // parameter that corrects scores for the choice; -1: none
  Matrices up, down;
  Linear shared_up, shared_down, shared_gate;  // of the shared experts, where `how` has them
};
ExpertLayer find_experts(const Weights& weights, int segment, int number);

// Returns stream + what the experts make of x [T, H], in a slot as add_linear. A token's routed experts are added in
// their order, then the shared ones, which all tokens pass.
Slot* add_experts(Step& step, const ExpertLayer& layer, Slot* x, Slot* stream);

}  // namespace collimate::model
