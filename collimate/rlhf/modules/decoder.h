#pragma once

#include <memory>
#include <optional>
#include <string>

#include "collimate/base/config.h"
#include "collimate/flow/context.h"
#include "collimate/flow/weights_port.h"
#include "collimate/model/model.h"
#include "collimate/rlhf/modules/options.h"
#include "collimate/tensor/away_file.h"

namespace collimate::rlhf {

// A recipe adds these options to a model's section when it makes the model a module of a graph.
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
  COLLIMATE_OPTION(std::string, step_reward, "none", "", "of a process reward model: AlgorithmOptions");
  COLLIMATE_OPTION(std::string, step_separator, "\n", "", "what ends a step of a completion that it scores");
  COLLIMATE_OPTION(nlohmann::json, gym, nullptr, "",
                   "the entry of the environment with which it draws samples in turns; null: in one turn");
  COLLIMATE_OPTION(int64_t, longest_tokens, 0, "tokens",
                   "longest row of any role: what ropes are made for; 0: not known", base::at_least(int64_t{0}));
  // The memory plan reads these.
  COLLIMATE_OPTION(int64_t, rows, 0, "rows", "of an iteration", base::at_least(int64_t{0}));
  COLLIMATE_OPTION(int64_t, row_tokens, 1, "tokens", "longest row", base::at_least(int64_t{1}));
  COLLIMATE_OPTION(int64_t, predicted_tokens, 1, "tokens", "most tokens of a row that are trained",
                   base::at_least(int64_t{1}));
};

// One model on one worker, which the modules that name the same weights share. The weights are on the device as long as
// at least one of these modules is.
struct Decoder {
  std::shared_ptr<model::Weights> weights;
  std::unique_ptr<model::Model> model;
  tensor::Exec exec;
  std::shared_ptr<tensor::AwayFile> away;  // the file for weights off the device; null if they never leave it
  int there = 0;                           // modules that are on the device

  // A module calls come() when it comes to the device and leave() when it leaves. The first to come brings the weights;
  // with the last to leave they leave too, and the memory that passes keep is given back.
  void come();
  void leave();
};

// Returns the file for data that leaves the worker's device; it is made on first use.
std::shared_ptr<tensor::AwayFile> away_file(flow::Context& context);

// Returns the ranks that share a module's model, by the layout of the module's functions. Before a run has begun they
// have no group.
model::ModelRanks model_ranks(const flow::Context& context);
// Returns whether ranks can share the tokens of each row that a model's function reads (context parallelism). All
// functions can but those that generate, which includes answers to prompts.
bool shares_tokens(const graph::FunctionSpec& function);
// Returns the ranks that compute a function's rows together, each rank some of the tokens. Before a run has begun they
// have no group.
model::ContextRanks context_ranks(const flow::Context& context, const std::string& function);
// Returns the shape of the whole model, by the directory's config.json and the head that is asked for. Throws
// InputError for from_scratch with a directory of adapters.
shape::ModelShape decoder_shape(const DecoderOptions& options);
// Returns how the model's weights are kept.
model::WeightsOptions weights_options(const DecoderOptions& options, const model::ModelRanks& ranks = {});
// Returns how the weights of the model's base are kept, if it has one.
model::WeightsOptions base_options(const DecoderOptions& options, const model::ModelRanks& ranks);
// Returns the shape of the part that one of these ranks computes.
shape::ModelShape own_shape(const DecoderOptions& options, const model::ModelRanks& ranks);
// Returns the adapters that the section asks for: those in the model's directory, if it holds any, else new ones.
// Throws InputError if the section contradicts those in the directory.
model::LoraOptions lora_options(const DecoderOptions& options);

// Returns a section of the run's config. What the config leaves out has its default.
template <class Section>
Section read_section(const flow::Context& context, const std::string& name) {
  Section section;
  base::apply(context.config.value(name, nlohmann::json::object()), name, section);
  return section;
}

// Returns the options of the model that guesses tokens for rollouts of `policy`. Its identity is "draft", and it is not
// trained.
DecoderOptions draft_options(const RolloutOptions& rollout, const DecoderOptions& policy);

// Says how many parameters a model's adapters have and which layers they adapt: "policy trains 768 parameters beside
// …". Returns "" without adapters. Throws InputError if they do not fit the model, of which only config.json is read.
std::string adapters_text(const DecoderOptions& options);

// Returns the worker's decoder of that identity and opens it on first use: it is read from its directory or, with
// from_scratch, random by the run's seed. `ranks` are the ranks that each have a part of the model. Throws InputError
// when the directory is wrong.
std::shared_ptr<Decoder> open_decoder(flow::Context& context, const DecoderOptions& options,
                                      const model::ModelRanks& ranks = {});

// A decoder as weight links see it.
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
