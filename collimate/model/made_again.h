#pragma once

#include <functional>
#include <memory>

#include "collimate/model/layers.h"

namespace collimate::model {

// A slot that one layer reads, by whatever it makes of others that are kept. Where the step says so (Step::again) its
// memory is given back as soon as that layer has run, and the backward makes it again, to the same bits, before it
// comes to the layer, and then runs backward through it.
class MadeAgain {
 public:
  using Make = std::function<Slot*(Step& step)>;

  // Runs `make`, which must give the same each time and lasts as long as the record.
  MadeAgain(Step& step, Make make);

  Slot* slot() const { return slot_; }
  // To be called when its reader has run and pushed its backward.
  void has_been_read(Step& step);

 private:
  struct Again;

  std::shared_ptr<Again> again_;  // null: the slot is kept
  Slot* slot_ = nullptr;
  tensor::Arena::Mark mark_;
};

}  // namespace collimate::model
