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

// Rewards of the config's `reward:` list on the host: decodes prompt and completion, scores, and leaves out the rows
// that on_error drops. Parameters: tokenizer (a directory), the list itself as `rewards`, and `answers`: true for the
// column of that name. The metric reward/errors counts failures and notes the first, and each mean is over what its
// reward judged.
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

// One sample as rewards and reports see it, of ids of its prompt and of its completion, which continues the prompt:
// generate::completion_text, but for a stop string, which rewards see.
RewardSample decoded_sample(std::span<const int32_t> prompt, std::span<const int32_t> completion,
                            const text::Tokenizer& tokenizer);
// The samples of rows as rewards and reports see them: texts without special tokens, broken UTF-8 in them replaced.
std::vector<RewardSample> decode_samples(const Batch& rows, const text::Tokenizer& tokenizer);

}  // namespace collimate::rlhf
