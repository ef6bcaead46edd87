#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/model/decoder.h"
#include "collimate/model/forward_record.h"
#include "collimate/model/kv_cache.h"

namespace collimate::model {

// Runs forward and backward of a decoder, segment by segment, on arenas of its own, which the caller makes large enough
// (memory_plan.h) and resets. Results lie in these arenas. For rotary models `turns` has tables that cover the
// positions.
class Passes {
 public:
  Passes(std::shared_ptr<Weights> weights, tensor::Exec exec);

  const Decoder& decoder() const { return decoder_; }
  // These return whether a backward of that run is given a gradient, and whether it gives one to the stage before.
  bool takes_gradient(int run) const { return base::at(gradients_of_runs_, run).taken; }
  bool gives_gradient(int run) const { return base::at(gradients_of_runs_, run).given; }
  tensor::Arena& workspace() { return workspace_; }
  tensor::Arena& gradients() { return gradients_; }

  // Returns final hidden states [T, H], without a tape. Keys and values go to `cache`, or if it is null to scratch
  // storage. Of several stages each receives the stream from the one before and sends it on, once for each of its runs;
  // the last one returns the hidden states, the others the stream.
  const Slot& infer(const StepInput& input, const Turns* turns, KvCache* cache, RouterChoices* choices = nullptr);
  // Runs one run's part of infer() without a cache, and exchanges nothing: `stream` is as for record().
  const Slot& infer_run(const StepInput& input, const Turns* turns, int run, const float* stream,
                        RouterChoices* choices);
  // Runs record.run of a training forward over record.input and keeps it in record.activations. Returns the same as
  // infer(). `stream` is that of the stage before, which the caller has received; null on the first stage, and where a
  // pass is only measured.
  const Slot& record(ForwardRecord::Impl& record, const Turns* turns, const float* stream);
  // Starts from the gradient of what the forward returned, null where nothing ahead of the stage's end is trained.
  // Returns the gradient of the stream of the stage before, null where that stage wants none. Calls `segment_done` as
  // Model::backward does, but not for adapters.
  const float* backward(ForwardRecord::Impl& record, const Turns* turns, const float* gradient,
                        const std::function<void(int segment)>& segment_done);

 private:
  // Runs a segment and holds its weights meanwhile.
  Slot* run(Step& step, int segment, Slot* stream) const;
  Step step(const StepInput& input, tensor::Arena& arena, const Turns* turns) const;
  float* scratch_storage(const StepInput& input);
  // Returns the floats of a block of keys and values in the layer that takes the most, of the heads of a rank out of so
  // many.
  int64_t scratch_block_floats(int head_ranks) const;
  // Makes a slot [T, hidden], without values, for the stream that the run's first segment reads from the stage ahead.
  Slot* incoming(const StepInput& input, tensor::Arena& arena, int run) const;
  // Takes the stream through the blocks of a run, and in the last one through the last norm.
  Slot* infer_blocks(Step& step, int run, KvCache* cache, Slot* stream);
  static void read_cache(Step& step, KvCache& cache, int layer);
  void record_all(ForwardRecord::Impl& record, Step& step, const float* from);
  void record_inputs(ForwardRecord::Impl& record, Step& step, const float* from);
  const float* segment_backward(ForwardRecord::Impl& record, Step& step, int segment, float* gradient);

  std::shared_ptr<Weights> weights_;
  tensor::Exec exec_;
  Decoder decoder_;
  struct Gradients {
    bool taken = false, given = false;
  };
  std::vector<Gradients> gradients_of_runs_;
  tensor::Arena workspace_, gradients_;
  Scratch again_;
};

}  // namespace collimate::model
