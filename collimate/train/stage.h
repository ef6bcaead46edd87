#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collimate/train/micro_step.h"
#include "collimate/train/pipeline.h"

namespace collimate::train {

// Takes the micro-batches of an update through this rank's stage of the model, or its runs. Calls block; all stages run
// the same micro-batches.
class Stage {
 public:
  using Forwarded = std::function<void(size_t number, MicroStep&)>;
  // Runs a micro-batch's backward and returns the gradient of the stream that the stage got.
  using Backward = std::function<at::Tensor(size_t number, MicroStep&, const at::Tensor& gradient)>;

  // All references must outlive the Stage. `noise` is that of pack_rows.
  Stage(model::Model& model, const LearnerOptions& options, const model::ContextRanks& context,
        std::span<const Batch> parts, std::optional<uint64_t> noise)
      : model_(model), options_(options), context_(context), parts_(parts), noise_(noise) {}

  // Runs the steps. Calls `forwarded` behind the forward of each micro-batch through each run, and `backward` for its
  // backward, if any.
  void run(const std::vector<StageStep>& steps, const Forwarded& forwarded, const Backward& backward = {});

 private:
  struct UnderWay {
    std::unique_ptr<MicroStep> micro;
    at::Tensor passed;  // handed to the next act: a stream, or the gradient of one
  };
  void act(const StageStep& step, UnderWay& one, const Forwarded& forwarded, const Backward& backward);
  at::Tensor received(const MicroStep& micro, int behind) const;
  void send(const at::Tensor& stream, int behind) const;
  const model::StageRanks& stages() const { return model_.weights().stages(); }

  model::Model& model_;
  const LearnerOptions& options_;
  const model::ContextRanks& context_;
  std::span<const Batch> parts_;
  std::optional<uint64_t> noise_;
  std::vector<UnderWay> under_way_;  // by run, then micro-batch
};

}  // namespace collimate::train
