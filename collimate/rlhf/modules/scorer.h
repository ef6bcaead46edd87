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
#include "collimate/text/tokenizer.h"
#include "collimate/train/micro_batch.h"

namespace collimate::rlhf {

// A model that reads samples, without gradients. With head lm it has the functions log_probs (makes
// reference_log_probs), old_log_probs, answers (makes model_answer: completes the prompts of a few rows),
// teacher_lists, divergence, mismatched_log_probs and mismatched_reference_log_probs. With head value it has values,
// with head score it has score (makes reward) and step_scores (of trainable tokens).
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
  // Returns what a policy's training does with the experts that its routers chose in rollouts. Known after setup.
  // Throws InputError if a model without experts is to replay them.
  train::RecordedRoutes routes() const;
  Decoder& decoder() { return *decoder_; }
  tensor::AwayFile& away() { return *decoder_->away; }
  const Decoder& decoder() const { return *decoder_; }

 private:
  // Returns whether score() gives the rewards of a process reward model.
  bool scores_steps() const { return options_.step_reward != std::string("none"); }

  DecoderOptions options_;
  std::shared_ptr<Decoder> decoder_;
  std::unique_ptr<DecoderPort> port_;
  float temperature_ = 1.0F;
  int64_t micro_batch_tokens_ = 0;
  // How the placement lays out one function.
  struct Layout {
    int64_t micro_batch_rows = 0;
    model::ContextRanks context;
  };
  std::map<std::string, Layout> layouts_;         // by function
  std::string router_replay_;                     // TrainOptions::router_replay
  std::function<void()> progress_;                // Context::progress
  std::unique_ptr<text::Tokenizer> tokenizer_;    // by which steps are found; read when the first row is scored
  std::optional<std::vector<int32_t>> stop_ids_;  // that end answers; read when the first answer is asked for
};

}  // namespace collimate::rlhf
