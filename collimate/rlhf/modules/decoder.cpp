#include "collimate/rlhf/modules/decoder.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/flow/line_groups.h"
#include "collimate/host/base_model.h"
#include "collimate/model/peft_adapters.h"
#include "collimate/rlhf/types/model_answer.h"

namespace collimate::rlhf {
namespace {

// Returns the base, shared by the worker's models, on its device. Models over it may have taken it away when they left.
std::shared_ptr<model::Weights> open_base(flow::Context& context, const DecoderOptions& options,
                                          const model::ModelRanks& ranks) {
  const model::WeightsOptions kept = base_options(options, ranks);
  const std::string part = fmt::format("{} of tp, {} of pp", ranks.tensor.place.rank, ranks.stages.place.rank);
  auto base = context.shared<model::Weights>(fmt::format("base:{}, {}", kept.tag, part), [&] {
    return model::load_huggingface(options.path, options.base_head, kept, {context.pool});
  });
  if (!base->resident()) base->restore(*away_file(context));
  return base;
}

std::shared_ptr<model::Weights> open_weights(flow::Context& context, const DecoderOptions& options,
                                             const model::ModelRanks& ranks, tensor::Exec exec) {
  const uint64_t seed = context.seed;
  model::WeightsOptions kept = weights_options(options, ranks);
  if (kept.based != model::Based::kNo) kept.base = open_base(context, options, ranks);
  std::shared_ptr<model::Weights> weights;
  if (options.from_scratch) {
    weights = std::make_shared<model::Weights>(decoder_shape(options), kept, exec);
    weights->initialize(base::mix(seed, base::stable_hash("weights")),
                        static_cast<float>(options.initializer_std.get()));
  } else {
    weights = model::load_huggingface(options.path, options.head, kept, exec);
  }
  if (kept.lora.on() && !host::holds_adapters(options.path))
    model::initialize_lora(*weights, base::mix(seed, base::stable_hash("adapters")));
  return weights;
}

// Returns the options of the adapters that the directory holds, whose training goes on: rank, scale and layers are
// those of the directory. Throws InputError if the section asks for others.
model::LoraOptions continued(const DecoderOptions& options) {
  const model::LoraOptions asked = options.lora.resolved(), unset;
  model::LoraOptions held = model::PeftAdapters(options.path).options();
  held.dropout = asked.dropout;
  const std::string where = options.weights.get() + " lora", what = "the adapters in " + options.path.get();
  if (asked.rank != held.rank)
    throw base::InputError(
        base::expectation(where + ".rank", fmt::format("{}, the rank of {}, which are trained on", held.rank, what),
                          fmt::format("{}", asked.rank), "that rank, or beginning from the merged model"));
  if (asked.alpha != unset.alpha || asked.rslora || asked.targets != unset.targets || !asked.modules_to_save.empty() ||
      asked.dora)
    throw base::InputError(base::expectation(
        where, fmt::format("rank, dropout and b_rate_ratio alone beside {}, which say the rest", what),
        "alpha, rslora, targets, modules_to_save or dora", "leaving them out"));
  return held;
}

}  // namespace

shape::ModelShape decoder_shape(const DecoderOptions& options) {
  if (options.from_scratch && host::holds_adapters(options.path))
    throw base::InputError(base::expectation(options.weights.get() + " from_scratch", "false beside adapters", "true",
                                             "the path of the model alone"));
  return model::huggingface_shape(options.path, options.head, weights_options(options));
}

model::LoraOptions lora_options(const DecoderOptions& options) {
  const model::LoraOptions asked = options.lora.resolved();
  model::LoraOptions lora = asked.on() && host::holds_adapters(options.path) ? continued(options) : asked;
  if (lora.dora && lora.dropout > 0)
    throw base::InputError(base::expectation(options.weights.get() + " lora.dropout",
                                             "0 of adapters with DoRA, whose lengths are of all inputs",
                                             fmt::format("{}", lora.dropout), "leaving it out"));
  return lora;
}

namespace {

// Returns the ranks that share the weights or, with `of_experts`, if there are several expert ranks, the ranks that
// have the same experts.
model::DataShares data_shares(const flow::Context& context, bool of_experts) {
  model::DataShares shares;
  shares.deadline_seconds = context.deadline_seconds;
  for (const std::string& function : context.calls) {
    if (!context.shares_weights(function)) continue;
    const comm::Mesh& mesh = context.mesh(function);
    const int copies = mesh.size("dp") * mesh.size("cp"), ep = context.layout(function).ep;
    if (of_experts && ep == 1) continue;
    shares.ranks = std::max(shares.ranks, of_experts ? copies / ep : copies);
    comm::Group* group = of_experts ? context.line(function, flow::kExpertCopies) : context.copies(function);
    if (group != nullptr) shares.group = group;
  }
  if (shares.group != nullptr) shares.rank = shares.group->rank();
  return shares;
}

}  // namespace

model::ModelRanks model_ranks(const flow::Context& context) {
  model::ModelRanks ranks;
  model::TensorRanks& tensor = ranks.tensor;
  model::StageRanks& stages = ranks.stages;
  model::ExpertRanks& experts = ranks.experts;
  tensor.deadline_seconds = stages.deadline_seconds = experts.deadline_seconds = context.deadline_seconds;
  for (const std::string& function : context.calls) {
    const graph::Layout layout = context.layout(function);
    tensor.place.ranks = std::max(tensor.place.ranks, layout.tp);
    stages.place.ranks = std::max(stages.place.ranks, layout.pp);
    stages.place.runs = std::max(stages.place.runs, layout.virtual_stages);
    if (!layout.stages.empty()) stages.place.layers = layout.stages;
    experts.place.ranks = std::max(experts.place.ranks, layout.ep);
    if (comm::Group* line = context.line(function, "tp"); line != nullptr) tensor.group = line;
    if (comm::Group* line = context.line(function, "pp"); line != nullptr) stages.group = line;
    if (comm::Group* line = context.line(function, flow::kExperts); line != nullptr) experts.group = line;
  }
  if (experts.group != nullptr) experts.place.rank = experts.group->rank();
  if (tensor.group != nullptr) tensor.place.rank = tensor.group->rank();
  if (stages.group != nullptr) stages.place.rank = stages.group->rank();
  ranks.shares = data_shares(context, /*of_experts=*/false);
  ranks.expert_shares = data_shares(context, /*of_experts=*/true);
  return ranks;
}

bool shares_tokens(const graph::FunctionSpec& function) {
  const auto answers = [](const graph::Column& made) { return made.name == kModelAnswer.name; };
  return function.kind == graph::Kind::kTrain ||
         (function.kind == graph::Kind::kScore && std::ranges::none_of(function.makes, answers));
}

model::ContextRanks context_ranks(const flow::Context& context, const std::string& function) {
  const graph::Layout layout = context.layout(function);
  model::ContextRanks ranks{.ranks = layout.cp, .kind = layout.cp_kind};
  ranks.group = context.line(function, "cp");
  ranks.deadline_seconds = context.deadline_seconds;
  if (ranks.group != nullptr) ranks.rank = ranks.group->rank();
  return ranks;
}

shape::ModelShape own_shape(const DecoderOptions& options, const model::ModelRanks& ranks) {
  return shape::local_shape(decoder_shape(options), ranks.place(), "model " + options.weights.get());
}

namespace {

// Returns which part of the weights the model shares with its base. It shares none if its ranks share weights or divide
// experts, as they then have other parts than the next model's ranks; nor if it has stages and another head than the
// base, as its stages are then cut at other places.
model::Based based(const DecoderOptions& options, const model::ModelRanks& ranks) {
  if (options.base->empty() || ranks.shares.several() || ranks.experts.several()) return model::Based::kNo;
  if (options.head.get() == options.base_head.get()) return model::Based::kWhole;
  return ranks.stages.several() ? model::Based::kNo : model::Based::kButHead;
}

}  // namespace

model::WeightsOptions base_options(const DecoderOptions& options, const model::ModelRanks& ranks) {
  const int tp = ranks.tensor.place.ranks, pp = ranks.stages.place.ranks;
  const std::vector<int64_t>& layers = ranks.stages.place.layers;
  const int runs = ranks.stages.place.runs;
  const std::string stages = (runs > 1 ? fmt::format(" times {}", runs) : "") +
                             (layers.empty() ? "" : fmt::format(" of {}", fmt::join(layers, ", ")));
  return {.compute = tensor::compute_type_of(options.compute.get()),
          .reduction_chunks = static_cast<int>(options.reduction_chunks.get()),
          .tag = options.base.get() + (tp * pp > 1 ? fmt::format(" tp {} pp {}{}", tp, pp, stages) : ""),
          .ranks = {.tensor = ranks.tensor, .stages = ranks.stages}};
}

model::WeightsOptions weights_options(const DecoderOptions& options, const model::ModelRanks& ranks) {
  return {.trained = options.trained,
          .compute = tensor::compute_type_of(options.compute.get()),
          .reduction_chunks = static_cast<int>(options.reduction_chunks.get()),
          .tag = options.weights,
          .lora = lora_options(options),
          .longest_tokens = options.longest_tokens,
          .latent_cache = options.latent_cache,
          .ranks = ranks,
          .based = based(options, ranks)};
}

DecoderOptions draft_options(const RolloutOptions& rollout, const DecoderOptions& policy) {
  DecoderOptions draft;
  base::apply(
      {{"path", rollout.speculation.draft_model.get()}, {"compute", policy.compute.get()}, {"weights", "draft"}},
      "rollout", draft);
  return draft;
}

std::string adapters_text(const DecoderOptions& options) {
  const model::LoraOptions lora = lora_options(options);
  if (!lora.on()) return "";
  const shape::ModelShape shape = decoder_shape(options);
  int64_t trained = 0, frozen = 0;
  for (const shape::ParamSpec& spec : model::model_params(shape, lora))
    (model::is_changed_by_training(lora, spec) ? trained : frozen) += spec.count();
  std::string what = lora.dora ? ", with DoRA" : "";
  if (!lora.own.empty()) what += fmt::format(", {} layers with their own", lora.own.size());
  return fmt::format("{} trains {} parameters beside {} frozen ones: rank {}, scale {:.6g}{}, {}",
                     options.weights.get(), trained, frozen, lora.rank, lora.scale(), what,
                     fmt::join(model::lora_targets(shape, lora), " "));
}

void Decoder::come() {
  if (there++ == 0 && !weights->resident()) weights->restore(*away);
}

void Decoder::leave() {
  if (--there > 0) return;
  model->release();
  weights->offload(*away);
}

std::shared_ptr<tensor::AwayFile> away_file(flow::Context& context) {
  return context.shared<tensor::AwayFile>(
      "away", [&] { return std::make_shared<tensor::AwayFile>(context.swap_directory, context.progress); });
}

std::shared_ptr<Decoder> open_decoder(flow::Context& context, const DecoderOptions& options,
                                      const model::ModelRanks& ranks) {
  return context.shared<Decoder>("decoder:" + options.weights.get(), [&] {
    auto decoder = std::make_shared<Decoder>();
    decoder->exec = {context.pool};
    decoder->weights = open_weights(context, options, ranks, decoder->exec);
    decoder->model = std::make_unique<model::Model>(decoder->weights, decoder->exec);
    return decoder;
  });
}

bool DecoderPort::carries(int param) const {
  return model::is_changed_by_training(decoder_->weights->options().lora, base::at(whole_params(), param));
}

flow::WeightsPort::Kept DecoderPort::kept(int param) {
  const model::Weights::KeptValues kept = decoder_->weights->kept_of(param);
  return {&base::at(decoder_->weights->params(), param), kept.begin, kept.values};
}

void DecoderPort::updated(uint64_t version) { decoder_->weights->commit(version); }

}  // namespace collimate::rlhf
