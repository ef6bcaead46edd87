#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collimate/flow/module.h"
#include "collimate/rlhf/modules/decoder.h"
#include "collimate/train/micro_batch.h"

namespace collimate::rlhf {

// A model that reads samples: log_probs (makes reference_log_probs), old_log_probs, values, and score (makes reward);
// answers (makes model_answer) completes the prompts of a few rows. No gradients. Which of them can be called depends
// on its head.
class ScorerModule : public flow::Module {
 public:
  explicit ScorerModule(const nlohmann::json& parameters);
  std::vector<graph::FunctionSpec> functions() const override;
  std::vector<tensor::MemoryItem> memory(const flow::Context& context) const override;
  bool keeps_state(const flow::Context&) const override { return false; }
  void setup(flow::Context& context) override;
  Batch call(const std::string& function, const Batch& input, const flow::CallInfo& info) override;
  void reside(bool on_device) override;
  flow::WeightsPort* weights() override { return port_.get(); }

 protected:
  const DecoderOptions& options() const { return options_; }
  float temperature() const { return temperature_; }  // of log-probs; known after setup
  // Says of a policy that draws samples what training does with the choices of its routers. Known after setup.
  // InputError where a model without experts is to replay them.
  train::RecordedRoutes routes() const;
  Decoder& decoder() { return *decoder_; }
  tensor::AwayFile& away() { return *decoder_->away; }
  const Decoder& decoder() const { return *decoder_; }

 private:
  DecoderOptions options_;
  std::shared_ptr<Decoder> decoder_;
  std::unique_ptr<DecoderPort> port_;
  float temperature_ = 1.0F;
  int64_t micro_batch_tokens_ = 0;
  // By function, as the placement says.
  struct Layout {
    int64_t micro_batch_rows = 0;
    model::ContextRanks context;
  };
  std::map<std::string, Layout> layouts_;
  std::string router_replay_;                     // of TrainOptions
  std::function<void()> progress_;                // Context::progress
  std::optional<std::vector<int32_t>> stop_ids_;  // of answers; known from the first one on
};

}  // namespace collimate::rlhf
