#pragma once

#include <functional>
#include <memory>

#include "collimate/model/layers.h"

namespace collimate::model {

// Holds a slot that one layer reads and that `make` can make again from slots that are kept. Where the step says so
// (Step::again) the slot's memory is given back as soon as that layer has run. The backward makes it again, to the same
// bits, before it comes to the layer, and then runs backward through what made it.
class MadeAgain {
 public:
  using Make = std::function<Slot*(Step& step)>;

  // Runs `make`, which must give the same values each time. What it refers to must last as long as the record.
  MadeAgain(Step& step, Make make);

  Slot* slot() const { return slot_; }
  // Must be called when the slot's reader has run and pushed its backward.
  void has_been_read(Step& step);

 private:
  struct Again;

  std::shared_ptr<Again> again_;  // null: the slot is kept
  Slot* slot_ = nullptr;
  tensor::Arena::Mark mark_;
};

}  // namespace collimate::model
