#pragma once

#include <memory>
#include <optional>
#include <string>

#include "collimate/flow/context.h"
#include "collimate/flow/weights_port.h"
#include "collimate/model/model.h"
#include "collimate/rlhf/modules/options.h"
#include "collimate/tensor/away_file.h"

namespace collimate::rlhf {

// A recipe adds these to a model's section when it makes it a module of a graph.
struct DecoderOptions : ModelOptions {
  COLLIMATE_OPTION(std::string, weights, "", "", "identity: modules of one worker with the same one share the weights");
  COLLIMATE_OPTION(bool, trained, false, "", "gradients and optimizer state exist");
  COLLIMATE_OPTION(std::string, base, "", "",
                   "identity of weights that nothing trains, which models of one worker share: what of this model "
                   "stays as its directory has it; none where empty");
  COLLIMATE_OPTION(std::string, base_head, "lm", "", "what the last layer of these gives",
                   base::one_of({"lm", "score", "value"}));
  COLLIMATE_OPTION(std::string, head, "lm", "", "what the last layer gives", base::one_of({"lm", "score", "value"}));
  COLLIMATE_OPTION(std::string, loss_rows, "", "", "what the rows are that training reads: LossEntry");
  COLLIMATE_OPTION(std::string, default_loss, "", "", "loss where algorithm.loss_type names none");
  base::Nested<AlgorithmSection> algorithm{this, "algorithm", "constants of the loss"};
  COLLIMATE_OPTION(int64_t, total_updates, 0, "updates", "optimizer steps of the whole run",
                   base::at_least(int64_t{0}));
  COLLIMATE_OPTION(int64_t, updates_per_epoch, 1, "updates", "in which an epoch trains an iteration's rows",
                   base::at_least(int64_t{1}));
  COLLIMATE_OPTION(bool, sampled, true, "",
                   "its rows are drawn at rollout.temperature, and so are log-probs; else at 1");
  COLLIMATE_OPTION(int64_t, ptx_tokens, 0, "tokens",
                   "longest row of text that is trained beside each sample (types/ptx.h); 0: none",
                   base::at_least(int64_t{0}));
  COLLIMATE_OPTION(
      std::optional<double>, drawn_share, std::nullopt, "",
      "the rows that it generates for have answers, of which it draws this share anew; null: rows are prompts",
      base::between(0.0, 1.0));
  COLLIMATE_OPTION(int64_t, longest_tokens, 0, "tokens",
                   "longest row of any role: what ropes are made for; 0: not known", base::at_least(int64_t{0}));
  // These are for the memory plan.
  COLLIMATE_OPTION(int64_t, rows, 0, "rows", "of an iteration", base::at_least(int64_t{0}));
  COLLIMATE_OPTION(int64_t, row_tokens, 1, "tokens", "longest row", base::at_least(int64_t{1}));
  COLLIMATE_OPTION(int64_t, predicted_tokens, 1, "tokens", "most tokens of a row that are trained",
                   base::at_least(int64_t{1}));
};

// One model on one worker, shared by the modules that name the same weights. It is on its device as long as one of
// these is there.
struct Decoder {
  std::shared_ptr<model::Weights> weights;
  std::unique_ptr<model::Model> model;
  tensor::Exec exec;
  std::shared_ptr<tensor::AwayFile> away;  // where it is else; null until something leaves
  int there = 0;                           // modules

  // A module is there from now on, or is not: the first one brings the weights, with the last one they leave, and what
  // passes keep is given back.
  void come();
  void leave();
};

// The file of what leaves the worker's device, made on first use.
std::shared_ptr<tensor::AwayFile> away_file(flow::Context& context);

// The ranks that share the model of a module, by the layout of its functions; where no run has begun, without a group.
model::ModelRanks model_ranks(const flow::Context& context);
// Whether ranks can share the tokens of each row that a model's function reads (context parallelism): all functions but
// those that generate, also answers to prompts.
bool shares_tokens(const graph::FunctionSpec& function);
// The ranks that compute a function's rows together, each some of their tokens; where no run has begun, without a
// group.
model::ContextRanks context_ranks(const flow::Context& context, const std::string& function);
// The shape of its weights, by the directory's config.json and the head that is asked for, and how they are kept.
shape::ModelShape decoder_shape(const DecoderOptions& options);
model::WeightsOptions weights_options(const DecoderOptions& options, const model::ModelRanks& ranks = {});
// How its base is kept, where it has one.
model::WeightsOptions base_options(const DecoderOptions& options, const model::ModelRanks& ranks);
// The shape of what one of these ranks computes.
shape::ModelShape own_shape(const DecoderOptions& options, const model::ModelRanks& ranks);
// The adapters: those of the model's directory, where it holds any and the section asks for some, or those of the
// section. InputError where both say other things.
model::LoraOptions lora_options(const DecoderOptions& options);

// The model that guesses tokens for rollouts of this one: an identity of its own, nothing is trained.
DecoderOptions draft_options(const RolloutOptions& rollout, const DecoderOptions& policy);

// Says how many parameters a model's adapters are and which: "policy trains 768 parameters beside …"; "" without.
// InputError where they do not fit the model. Reads its config.json alone.
std::string adapters_text(const DecoderOptions& options);

// The worker's decoder of that identity, opened on first use: read from its directory or, from scratch, random by the
// run's seed. InputError when the directory is wrong. `ranks`: those that each have their part of it.
std::shared_ptr<Decoder> open_decoder(flow::Context& context, const DecoderOptions& options,
                                      const model::ModelRanks& ranks = {});

// Weight links see this of a decoder.
class DecoderPort final : public flow::WeightsPort {
 public:
  explicit DecoderPort(std::shared_ptr<Decoder> decoder) : decoder_(std::move(decoder)) {}
  const void* identity() const override { return decoder_->weights.get(); }
  uint64_t version() const override { return decoder_->weights->version(); }
  uint64_t checksum() const override { return decoder_->weights->checksum(); }
  tensor::Exec exec() const override { return decoder_->exec; }
  const shape::ModelShape& whole_shape() const override { return decoder_->weights->whole_shape(); }
  const std::vector<shape::ParamSpec>& whole_params() const override { return decoder_->weights->whole_params(); }
  bool carries(int param) const override;
  Kept kept(int param) override;
  void updated(uint64_t version) override;

 private:
  std::shared_ptr<Decoder> decoder_;
};

}  // namespace collimate::rlhf
