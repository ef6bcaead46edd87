#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/flow/module.h"
#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/advantage/shaping.h"

namespace collimate::rlhf {

// Runs an entry of the list of advantages as a host module with one function, "advantages". The parameters are the
// section `algorithm`. The module first shapes the rewards as that section says: it scales and clips them, subtracts
// penalties for length, shuffles them and, unless the entry does so itself, subtracts the KL against the reference. The
// state is the running scale and the coefficient of the KL; an iteration that is computed again begins from the state
// from which it began before.
class AdvantageModule final : public flow::Module {
 public:
  AdvantageModule(const AdvantageEntry& entry, const nlohmann::json& parameters);
  std::vector<graph::FunctionSpec> functions() const override;
  void setup(flow::Context& context) override;
  Batch call(const std::string& function, const Batch& input, const flow::CallInfo& info) override;
  std::vector<flow::Metric> metrics() override;
  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  struct State {
    RunningMoments rewards;
    double kl_coefficient = 0;

    static void fields(auto& self, auto&& field) {
      field("kl_coefficient", self.kl_coefficient);
      field("count", self.rewards.count);
      field("mean", self.rewards.mean);
      field("squares", self.rewards.squares);
    }
  };

  // Returns whether a loss divides by the tokens of the iteration (token_normalizer), which are then counted.
  bool counts_tokens() const { return options_.token_normalizer == std::string("iteration"); }
  Batch shaped(const Batch& rows, int64_t iteration);
  Batch penalised(const Batch& rows) const;
  void report(const Batch& rows);
  void report_kl(const Batch& rows);

  const AdvantageEntry entry_;
  AlgorithmOptions options_;
  int64_t completion_tokens_ = 0;  // longest completion
  int64_t iteration_ = -1;         // the last one that was computed
  State before_, now_;             // before that iteration and after it
  std::vector<flow::Metric> metrics_;
};

// Returns the options that a module of this entry reads beside the entry's own.
std::vector<std::string> reward_options(const AdvantageEntry& entry);
// Returns whether a module of this entry, with these options, reads the log-probs of a reference.
bool reads_reference(const AdvantageEntry& entry, const AlgorithmOptions& options);

}  // namespace collimate::rlhf
