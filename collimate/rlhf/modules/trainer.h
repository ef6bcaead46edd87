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

// A model that is trained by one loss (see loss/list.h): train beside the scorer's functions. Owns the optimizer; its
// state is the weights and the optimizer's. InputError for a loss that does not fit the recipe.
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
  // The weights as they are, with their tokenizer, as a Hugging Face directory.
  void write_model(const std::string& directory) const;
  // The trainer's rows were drawn by a policy, which recorded their log-probs.
  bool drawn() const { return options().loss_rows == std::string("rollouts"); }
  // Samples bring texts, whose loss is added.
  bool mixes() const { return options().ptx_tokens > 0; }
  // Compares the rows of all updates but the first, which compares its own, with what generation recorded.
  void check_later(std::span<const Batch> updates);
  // The version that trains first, and how many updates ago the oldest token was drawn.
  void report_versions(std::span<const Batch> updates);
  // Reports what rounding at sampling changed: log_probs beside old_log_probs, where the rows have both.
  void report_rounding(std::span<const Batch> updates);
  void report(const train::UpdateReport& update);
  void report_routers(const train::RouterReport& routers);
  void report_agreement(const model::RouterAgreement& routes);
  void stop_above_limit(const train::Mismatch& mismatch) const;

  std::string prefix_;  // "actor" or "critic": verl's families
  Loss loss_, ptx_loss_;
  double mismatch_limit_ = 0;
  bool mismatch_check_ = true;
  bool speaks_ = true;  // rank 0, which reports what is equal on all ranks
  std::string path_;    // the directory the model came from: its tokenizer goes with what is saved
  model::FileForm form_;
  std::unique_ptr<train::Learner> learner_;
  std::vector<flow::Metric> metrics_;
};

}  // namespace collimate::rlhf
