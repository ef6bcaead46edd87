#pragma once

#include <map>
#include <memory>
#include <vector>

#include "collimate/generate/service.h"
#include "collimate/rlhf/modules/episodes.h"
#include "collimate/rlhf/modules/scorer.h"
#include "collimate/text/tokenizer.h"

namespace collimate::rlhf {

// The policy as a generator of samples. It has the function generate, which streams, beside the scorer's functions,
// over the weights that the policy's trainer trains. The rows of all streams run in one Service. With an environment
// (DecoderOptions::gym) a sample is drawn in turns, and has the column `episode`. Rows that say their round
// (types/rounds.h) go on where they were left, up to the limit of that round.
class GeneratorModule final : public ScorerModule {
 public:
  explicit GeneratorModule(const nlohmann::json& parameters);
  std::vector<graph::FunctionSpec> functions() const override;
  std::vector<tensor::MemoryItem> memory(const flow::Context& context) const override;
  // Returns whether checkpoints have the generator's weights too: if these may be older than the trainer's.
  bool keeps_state(const flow::Context& context) const override;
  void setup(flow::Context& context) override;
  std::unique_ptr<flow::Stream> open(const std::string& function, const flow::CallInfo& info) override;
  void reside(bool on_device) override;
  std::vector<flow::Metric> metrics() override;
  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  bool takes_turns() const { return !options().gym->is_null(); }
  GymSection gym() const;
  void begin_episodes(const flow::Context& context);

  RolloutOptions rollout_;
  uint64_t seed_ = 0;
  bool saves_weights_ = false;
  std::vector<model::Share> saved_shares_;  // parts of the weights to save; empty: all that this rank keeps
  int64_t routed_ = 0;                      // experts per token that samples record
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::shared_ptr<Decoder> draft_;  // the model that guesses tokens; null: none does
  std::unique_ptr<generate::Service> service_;
  std::unique_ptr<Episodes> episodes_;  // null: completions have one turn
  generate::ServiceCounts last_;
};

}  // namespace collimate::rlhf
