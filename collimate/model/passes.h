#pragma once

#include <functional>
#include <memory>

#include "collimate/model/decoder.h"
#include "collimate/model/forward_record.h"
#include "collimate/model/kv_cache.h"

namespace collimate::model {

// Forward and backward of a decoder, segment by segment, on arenas of their own, which the caller makes large enough
// (memory_plan.h) and resets. They return what lies in these arenas. `turns`: tables that cover the positions, for
// rotary models.
class Passes {
 public:
  Passes(std::shared_ptr<Weights> weights, tensor::Exec exec);

  const Decoder& decoder() const { return decoder_; }
  tensor::Arena& workspace() { return workspace_; }
  tensor::Arena& gradients() { return gradients_; }

  // Gives final hidden states [T, H], without a tape. Keys and values go to `cache`, or with null to scratch storage.
  const Slot& infer(const StepInput& input, const Turns* turns, KvCache* cache, RouterChoices* choices = nullptr);
  // A training forward over record.input, to record.activations: the same states.
  const Slot& record(ForwardRecord::Impl& record, const Turns* turns);
  // Starts from dL/dhidden [T, H]. `segment_done` is as of Model::backward, but for adapters.
  void backward(ForwardRecord::Impl& record, const Turns* turns, const float* hidden_gradient,
                const std::function<void(int segment)>& segment_done);

 private:
  Step step(const StepInput& input, tensor::Arena& arena, const Turns* turns) const;
  float* scratch_storage(const StepInput& input);
  static void read_cache(Step& step, KvCache& cache, int layer);
  void record_all(ForwardRecord::Impl& record, Step& step);
  void record_inputs(ForwardRecord::Impl& record, Step& step);
  const float* segment_backward(ForwardRecord::Impl& record, Step& step, int segment, float* gradient);

  std::shared_ptr<Weights> weights_;
  tensor::Exec exec_;
  Decoder decoder_;
  int64_t scratch_block_floats_ = 0;  // of the block that takes the most
  tensor::Arena workspace_, gradients_;
};

}  // namespace collimate::model
