#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collimate/rlhf/modules/scorer.h"
#include "collimate/rlhf/types/loss.h"
#include "collimate/train/learner.h"

namespace collimate::rlhf {

// A model that is trained by one loss (see loss/list.h). It has the function train beside the scorer's functions and
// owns the optimizer; its state is the weights and the optimizer's state. Throws InputError for a loss that does not
// fit the recipe.
class TrainerModule final : public ScorerModule {
 public:
  explicit TrainerModule(const nlohmann::json& parameters);
  std::vector<graph::FunctionSpec> functions() const override;
  bool keeps_state(const flow::Context&) const override { return true; }
  void setup(flow::Context& context) override;
  void train_step(const std::string& function, std::span<const Batch> updates, const flow::CallInfo& info) override;
  void reside(bool on_device) override;
  void save_checkpoint(const std::string& directory, int64_t iteration) override;
  std::vector<flow::Metric> metrics() override;
  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  // Writes the present weights, with their tokenizer, as a Hugging Face directory.
  void write_model(const std::string& directory) const;
  // Returns whether a policy drew the trainer's rows and recorded their log-probs.
  bool drawn() const { return options().loss_rows == std::string("rollouts"); }
  // Returns whether samples bring texts (types/ptx.h), whose loss is added.
  bool mixes() const { return options().ptx_tokens > 0; }
  // Compares, before the first update, the log-probs of all rows that it does not train with those that generation
  // recorded; the first update compares its own rows.
  void check_later(std::span<const Batch> updates);
  // Reports the version of the weights before the first update, and how many versions older the weights were that drew
  // the oldest trained token.
  void report_versions(std::span<const Batch> updates);
  // Reports how much rounding at sampling changed log-probs: log_probs beside old_log_probs, if the rows have both.
  void report_rounding(std::span<const Batch> updates);
  void report(const train::UpdateReport& update);
  void report_routers(const train::RouterReport& routers);
  void report_agreement(const model::RouterAgreement& routes);
  void stop_above_limit(const train::Mismatch& mismatch) const;

  std::string prefix_;  // of metrics: "actor" or "critic", as in verl
  Loss loss_, ptx_loss_;
  double mismatch_limit_ = 0;
  bool mismatch_check_ = true;
  bool speaks_ = true;  // on rank 0 of the dp axis, which reports the metrics that are equal on all ranks
  std::string path_;    // the directory the model came from: its tokenizer goes with what is saved
  model::FileForm form_;
  std::unique_ptr<train::Learner> learner_;
  std::vector<flow::Metric> metrics_;
};

}  // namespace collimate::rlhf
