#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "collimate/base/stateful.h"
#include "collimate/batch/batch.h"
#include "collimate/graph/graph.h"

namespace collimate::recipe {

// Holds the samples that an iteration has left unfinished (rollout.round_shares), with those that go with them, between
// that iteration and the next one. The rows of an iteration are these, then new prompts: so many that as many are in
// progress in each iteration. They follow from the iterations before alone, and are saved with them.
class CarriedSamples : public base::Stateful {
 public:
  // Returns the rows of the example of that number in the endless sequence of examples.
  using NewRows = std::function<Batch(int64_t example)>;

  // `min_samples` as rlhf::part_rows has it.
  CarriedSamples(int64_t min_samples, NewRows new_rows) : min_samples_(min_samples), new_rows_(std::move(new_rows)) {}

  // Returns the `count` rows of the iteration after the last one that was taken.
  Batch rows(int64_t count) const;
  // Takes the rows of an iteration as generation left them, in their order.
  void take(const Batch& drawn);

  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  int64_t min_samples_;
  NewRows new_rows_;
  Batch carried_;
  int64_t begun_ = 0;  // prompts of the iterations taken so far
};

// Returns the id of the node of a recipe's graph that generates.
std::string generating_node(const graph::Graph& graph);

}  // namespace collimate::recipe
