#include "collimate/model/made_again.h"

#include <optional>
#include <utility>

namespace collimate::model {
namespace {

// Returns the step as it takes place in the scratch memory of this pass.
Step in_scratch(const Step& step, tensor::Tape& tape) {
  Step inner{step.exec, step.weights, *step.again->arena, step.input};
  inner.tape = &tape;
  inner.kv_type = step.kv_type;
  inner.kv_storage = step.again->kv_storage;
  inner.turns = step.turns;
  return inner;
}

}  // namespace

struct MadeAgain::Again {
  Again(const Step& the_step, Make the_make) : step(the_step), make(std::move(the_make)) {}

  const Step step;
  const Make make;
  Slot* kept = nullptr;  // the slot that the reader knows; it has no values between the passes

  // These are set in the backward, from before the reader's backward until that of `make` has run.
  std::optional<tensor::Tape> tape;
  Slot* made = nullptr;
  tensor::Arena::Mark mark;

  void restore() {
    mark = step.again->arena->mark();
    tape.emplace(*step.again->gradients, step.exec);
    Step inner = in_scratch(step, *tape);
    made = make(inner);
    kept->value = made->value;
  }
  void backward() {
    made->gradient = kept->gradient;
    made->written = kept->written;
    tape->run();
    tape.reset();
    step.again->arena->rewind(mark);
  }
};

MadeAgain::MadeAgain(Step& step, Make make) {
  if (step.tape == nullptr || step.again == nullptr) {
    slot_ = make(step);
    return;
  }
  again_ = std::make_shared<Again>(step, std::move(make));
  mark_ = step.again->arena->mark();
  tensor::Tape forgotten(*step.again->gradients, step.exec);
  Step inner = in_scratch(step, forgotten);
  slot_ = again_->kept = tensor::alias_slot(step.arena, *again_->make(inner));
  step.tape->push([again = again_] { again->backward(); });
}

void MadeAgain::has_been_read(Step& step) {
  if (again_ == nullptr) return;
  step.again->arena->rewind(mark_);
  step.tape->push([again = again_] { again->restore(); });
}

}  // namespace collimate::model
