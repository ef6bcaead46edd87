#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collimate/flow/module.h"
#include "collimate/rlhf/reward/reward.h"
#include "collimate/rlhf/types/answer.h"
#include "collimate/text/tokenizer.h"

namespace collimate::rlhf {

// Gives samples the rewards of the config's `reward:` list, on the host: it decodes prompt and completion, scores, and
// leaves out the rows that on_error drops. Parameters: `tokenizer` (a directory), `rewards` (the list itself) and
// `answers` (true to add the column `answer`). The metric reward/errors counts failures and notes the first;
// rewards/NAME/mean is over the samples that the reward judged.
class RewardModule final : public flow::Module {
 public:
  explicit RewardModule(const nlohmann::json& parameters);
  std::vector<graph::FunctionSpec> functions() const override;
  void setup(flow::Context& context) override;
  Batch call(const std::string& function, const Batch& input, const flow::CallInfo& info) override;
  std::vector<flow::Metric> metrics() override;

 private:
  void measure(const ScoredSamples& scored);
  bool tells_answers() const { return parameters_.value("answers", false); }

  nlohmann::json parameters_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::vector<RewardSpec> rewards_;
  std::vector<flow::Metric> metrics_;
};

// Returns one sample as rewards and reports see it, from the ids of its prompt and of its completion. The completion's
// text continues the prompt's, as generate::completion_text gives it, but is not cut before a stop string.
RewardSample decoded_sample(std::span<const int32_t> prompt, std::span<const int32_t> completion,
                            const text::Tokenizer& tokenizer);
// Returns the rows' samples as rewards and reports see them: the texts have no special tokens, and broken UTF-8 is
// replaced.
std::vector<RewardSample> decode_samples(const Batch& rows, const text::Tokenizer& tokenizer);

}  // namespace collimate::rlhf
