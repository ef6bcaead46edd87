#include "collimate/rlhf/modules/memory.h"

#include <algorithm>

#include "collimate/generate/routed_blocks.h"
#include "collimate/model/memory_plan.h"
#include "collimate/rlhf/modules/answers.h"
#include "collimate/tensor/ops/attention.h"
#include "collimate/tensor/scratch_need.h"
#include "collimate/train/pipeline.h"

namespace collimate::rlhf {
namespace {

using tensor::MemoryItem;

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kExpert = sizeof(model::RoutedExperts::value_type);
constexpr int64_t kRowTokenBytes = 64;  // per token, for all columns of a sample but recorded experts
// A pass keeps so many arrays of the size of its teacher lists: when scoring, the head's results and the values
// gathered from them; in training both models' log-probs and probabilities, their difference, the mixture and
// gradients.
constexpr int64_t kScoredLists = 6;
constexpr int64_t kTrainedLists = 16;

// The size of the largest pass that the limits allow.
struct Pass {
  int64_t tokens = 0;
  int64_t blocks = 0;                // blocks of the key-value layout that its sequences fill
  int64_t predicted = 0;             // tokens whose log-prob or value is computed
  model::ContextRanks context = {};  // that compute the pass together, each some of the tokens

  int64_t own_tokens() const { return (tokens + context.ranks - 1) / context.ranks; }  // of the rank with the most
  int64_t own_predicted() const { return std::min(predicted, own_tokens()); }          // at most
};

// Returns the largest micro-batch: at most `rows` rows within `budget` tokens, or one unit that is longer. Its rows may
// have any lengths, and each may fill its last block in part.
Pass micro_batch(const DecoderOptions& options, int64_t budget, int64_t rows, int64_t unit = 1) {
  const int64_t tokens = std::max(unit * options.row_tokens, std::min(budget, rows * options.row_tokens));
  const int64_t blocks = std::min({tokens, tensor::KvLayout::blocks_for(tokens) + rows,
                                   std::max(rows, unit) * tensor::KvLayout::blocks_for(options.row_tokens)});
  return {tokens, blocks, std::min(tokens, rows * options.predicted_tokens)};
}

model::ContextRanks context_of(const graph::Layout& layout) { return {.ranks = layout.cp, .kind = layout.cp_kind}; }

// Returns the most rows of a micro-batch: whole units of `unit` rows, at least one unit.
int64_t at_most_rows(const graph::Layout& layout, int64_t rows, int64_t unit = 1) {
  return layout.micro_batch == 0 ? rows : std::min(rows, std::max(unit, layout.micro_batch / unit * unit));
}

class Plan {
 public:
  // The model is computed by so many threads. With `records` its samples have the experts that their tokens passed.
  Plan(const DecoderOptions& options, const model::ModelRanks& ranks, int threads, bool records = false)
      : options_(options),
        shape_(decoder_shape(options)),
        own_shape_(rlhf::own_shape(options, ranks)),
        ranks_(ranks),
        weights_(weights_options(options, ranks)),
        passes_(shape_, weights_),
        recorded_experts_(records ? model::routed_width(shape_) : 0),
        scratch_(threads) {}

  void add(const std::string& purpose, int64_t bytes) {
    int64_t& so_far = bytes_of(purpose);
    so_far = std::max(so_far, bytes);
  }
  // With `whole` passes read all segments at once.
  void add_weights(std::optional<model::Sharing> sharing, bool whole) {
    add_all(model::weights_memory(shape_, weights_, sharing, whole));
    if (weights_.based == model::Based::kNo) return;
    const model::WeightsOptions base = base_options(options_, ranks_);
    const shape::ModelShape shape = model::huggingface_shape(options_.path, options_.base_head, base);
    for (const MemoryItem& item : model::weights_memory(shape, base, std::nullopt, whole))
      add(base.tag + "/" + item.purpose, item.bytes);
  }
  // `service` must be resolved.
  void add_cache(const generate::ServiceOptions& service) {
    add("kv_cache", model::kv_cache_bytes(own_shape_, service.kv_type.value(), service.cache_blocks));
  }
  void add_routes(int64_t blocks) {
    if (recorded_experts_ > 0) add("routed_experts", generate::routed_bytes(shape_, blocks));
  }
  void add_inference(const Pass& pass) { add_pass(pass, passes_.inference(pass.tokens, pass.blocks, pass.context)); }
  void add_training(const Pass& pass, model::Recompute recompute) {
    add_all(model::pass_memory(shape_, pass.own_tokens(),
                               passes_.training(pass.tokens, pass.blocks, recompute, pass.context), kept().forwards));
  }
  // Adds the hidden states of so many rows (tokens of a pass, and those that predict with their gradients), `logits`
  // floats and every column of the iteration's rows.
  void add_tensors(int64_t hidden_rows, int64_t logits) {
    const int64_t token_bytes = kRowTokenBytes + recorded_experts_ * kExpert;
    add("tensors",
        (hidden_rows * shape_.table_width() + logits) * kFloat + options_.rows * options_.row_tokens * token_bytes);
  }
  // Returns the floats of a teacher's lists: ids and log-probs in the rows, and in a pass `copies` arrays [predicted,
  // list]. Returns 0 if `copies` is 0.
  int64_t list_floats(int64_t predicted, int64_t copies) const {
    if (copies == 0) return 0;
    const int64_t list = std::min(options_.algorithm.teacher_tokens.get(), shape_.vocabulary) + 1;
    return (2 * options_.rows * options_.predicted_tokens + copies * predicted) * list;
  }
  // Returns what is kept at most of micro-batches under way. Without runs, those that wait for their backward are as
  // many as there are stages from this one on. More than four rounds of micro-batches keep no more than four do.
  train::MostKept kept() const {
    const shape::StageRank& place = weights_.ranks.stages.place;
    if (place.runs == 1) return {.forwards = place.ranks - place.rank};
    train::MostKept most =
        train::most_kept(train::interleaved({place.rank, place.ranks, place.runs}, int64_t{4} * place.ranks));
    ++most.received;  // a gradient that is not sent yet lies beside them
    return most;
  }
  // Return how many streams of a micro-batch are kept at most in training, and in scoring beside what a pass returns.
  int64_t streams() const { return kept().forwards + kept().received; }
  int64_t scoring_streams() const {
    const shape::StageRank& place = weights_.ranks.stages.place;
    if (place.runs == 1) return 0;
    const train::RankRuns of{place.rank, place.ranks, place.runs};
    return train::most_kept(train::interleaved_forwards(of, int64_t{4} * place.ranks)).received + 1;
  }
  void add_logits(int64_t predicted) {
    const int64_t bytes = model::recorded_logits_bytes(shape_, predicted, weights_.ranks.tensor.place);
    if (bytes > 0) add(options_.weights.get() + "/logits", bytes);
  }
  // These tell of working memory: of steps of at most so many tokens, after which `drawn` tokens are drawn; of a pass
  // that scores; and of one that trains rows of at most `row_tokens`.
  void add_generation_scratch(int64_t tokens, int64_t drawn) {
    add_layers_scratch(tokens, 0);
    tensor::add_linear_scratch(head_of(drawn), scratch_);
    tensor::add_draw_scratch(shape_.vocabulary, scratch_);
  }
  void add_scoring_scratch(const Pass& pass) {
    add_layers_scratch(pass.own_tokens(), 0);
    if (predicts()) tensor::add_log_prob_scratch(head_of(pass.own_predicted()), scratch_);
  }
  void add_training_scratch(const Pass& pass, int64_t row_tokens) {
    add_layers_scratch(pass.own_tokens(), row_tokens);
    if (predicts()) tensor::add_log_prob_backward_scratch(head_of(pass.own_predicted()), scratch_);
  }

  // Adds the bytes of a model that works beside this one.
  void add_beside(const std::vector<MemoryItem>& items) {
    for (const MemoryItem& item : items) bytes_of(item.purpose) += item.bytes;
  }

  const shape::ModelShape& shape() const { return shape_; }
  const shape::ModelShape& own_shape() const { return own_shape_; }
  tensor::ComputeType compute() const { return weights_.compute; }
  std::vector<MemoryItem> items() {
    if (scratch_.bytes() > 0) add("scratch", scratch_.bytes());
    return std::move(items_);
  }

 private:
  bool predicts() const { return shape_.head == shape::Head::kLanguageModel; }
  tensor::LinearSize head_of(int64_t rows) const {
    return {rows, shape_.vocabulary, shape_.table_width(), weights_.reduction_chunks};
  }
  void add_layers_scratch(int64_t tokens, int64_t backward_keys) {
    model::add_pass_scratch(own_shape_, weights_.reduction_chunks, tokens, backward_keys, scratch_);
    if (!weights_.lora.dora) return;
    // The lengths of rows need products of B and A, also in a pass without a backward.
    for (const shape::ParamSpec& spec : model::model_params(shape_, weights_.lora))
      if (spec.name.ends_with(model::kAdapterA))
        tensor::add_linear_backward_scratch({model::kFactorRows, spec.sizes[0], spec.sizes[1]}, scratch_);
  }
  int64_t& bytes_of(const std::string& purpose) {
    for (MemoryItem& item : items_)
      if (item.purpose == purpose) return item.bytes;
    items_.push_back({purpose, 0});
    return items_.back().bytes;
  }
  void add_pass(const Pass& pass, const model::PassFloats& floats) {
    add_all(model::pass_memory(shape_, pass.own_tokens(), floats));
  }
  void add_all(const std::vector<MemoryItem>& items) {
    for (const MemoryItem& item : items) add(options_.weights.get() + "/" + item.purpose, item.bytes);
  }

  const DecoderOptions& options_;
  shape::ModelShape shape_, own_shape_;  // of the whole model, and of the part that the rank computes
  model::ModelRanks ranks_;
  model::WeightsOptions weights_;
  model::PassPlan passes_;
  int64_t recorded_experts_;  // per token; 0: not recorded
  tensor::ScratchNeed scratch_;
  std::vector<MemoryItem> items_;
};

bool calls(const flow::Context& context, const std::string& function) {
  return std::find(context.calls.begin(), context.calls.end(), function) != context.calls.end();
}

bool makes_lists(const std::string& function) { return function == "teacher_lists" || function == "divergence"; }

// Returns how the ranks that train the module share master weights, gradients and optimizer state, or nothing if this
// module is not trained.
std::optional<model::Sharing> sharing(const flow::Context& context, const TrainOptions& train, bool averages) {
  if (!calls(context, "train")) return std::nullopt;
  const comm::Mesh& mesh = context.mesh("train");
  const graph::Layout layout = context.layout("train");
  return model::Sharing{layout.zero, mesh.size("dp") * mesh.size("cp"), averages,
                        offloads_optimizer(train, layout.offload)};
}

// Returns whether the module, if it is a mixture, makes or reads samples that have the experts of their tokens.
bool records_experts(const flow::Context& context, const DecoderOptions& options, const TrainOptions& train) {
  if (!options.sampled || train.router_replay == std::string("none")) return false;
  return calls(context, "generate") || calls(context, "old_log_probs") || options.loss_rows == std::string("rollouts");
}

// Returns the most rows of a step that has proposed tokens, or 0 without speculation.
int64_t speculation_rows(const generate::ServiceOptions& service) {
  return service.speculation_tokens > 0 ? std::min(service.speculation_rows, service.max_batch_tokens) : 0;
}

// Returns the tokens of the largest step of generation: all prompts of an iteration and a token of each sample, at
// least `guesses`, but at most max_batch_tokens; with evaluation, whose prompts are not known, max_batch_tokens.
int64_t generation_tokens(const RolloutOptions& rollout, bool evaluates, int64_t guesses) {
  const int64_t most = rollout.max_batch_tokens;
  const int64_t samples = rollout.prompts_per_iteration * rollout.samples_per_prompt;
  const int64_t prompts = rollout.prompts_per_iteration * rollout.prompt_tokens;
  return evaluates ? most : std::min(most, std::max(guesses, prompts + samples));
}

// Returns whether the config has an evaluation, whose rows may have any number and length.
bool evaluates(const nlohmann::json& config) {
  const auto set = [&](const char* section, const char* key) {
    const nlohmann::json value = config.value(section, nlohmann::json::object()).value(key, nlohmann::json());
    return !value.is_null() && value != 0;
  };
  return set("data", "eval") || set("data", "val_size") || set("evaluation", "measure");
}

// Adds the training of the texts that samples bring. They pass after the samples, so that the larger of the two counts.
void add_texts(Plan& plan, DecoderOptions options, const TrainOptions& train, const graph::Layout& layout) {
  options.row_tokens = options.predicted_tokens = options.ptx_tokens;
  const int64_t update = train.samples_per_update == 0 ? options.rows.get() : train.samples_per_update.get();
  Pass pass = micro_batch(options, micro_batch_tokens(train, options.loss_rows), at_most_rows(layout, update));
  pass.context = context_of(layout);
  plan.add_training(pass, recompute_of(train, layout.recompute));
  plan.add_tensors(pass.own_tokens() * plan.streams() + 2 * pass.own_predicted(),
                   options.rows * options.ptx_tokens * kRowTokenBytes / kFloat);
  plan.add_logits(pass.own_predicted());
  plan.add_training_scratch(pass, options.row_tokens);
}

// Returns the memory of the model that guesses for the service, which is there beside the service in each step.
std::vector<MemoryItem> draft_memory(const DecoderOptions& options, const generate::ServiceOptions& service) {
  Plan plan(options, {}, 1);
  const generate::ServiceOptions own = generate::of_draft(service, plan.shape(), plan.compute());
  plan.add_weights(std::nullopt, false);
  plan.add_cache(own);
  plan.add_inference({own.max_batch_tokens});
  plan.add_tensors(0, plan.shape().vocabulary * own.max_batch_sequences);
  return plan.items();
}

}  // namespace

std::vector<MemoryItem> decoder_memory(const flow::Context& context, const DecoderOptions& options,
                                       const generate::ServiceOptions* service) {
  const auto rollout = read_section<RolloutOptions>(context, "rollout");
  const auto train = read_section<TrainOptions>(context, "train");
  const int threads = context.pool == nullptr ? 1 : context.pool->threads();
  Plan plan(options, model_ranks(context), threads, records_experts(context, options, train));
  const shape::ModelShape& shape = plan.shape();
  plan.add_weights(sharing(context, train, train.ema > 0 && options.head != std::string("value")),
                   calls(context, "generate") || calls(context, "answers"));
  if (service != nullptr && calls(context, "generate")) {
    const int64_t guesses = speculation_rows(*service);
    const int64_t tokens = generation_tokens(rollout, evaluates(context.config) || options.drawn_share.get(), guesses);
    const int64_t drawn = std::max(guesses, std::min(options.rows.get(), service->max_batch_sequences));
    plan.add_cache(*service);
    plan.add_routes(service->cache_blocks);
    plan.add_inference({tokens});
    plan.add_tensors(0, std::min<int64_t>(int64_t{8} << 20, shape.vocabulary * drawn));
    plan.add_generation_scratch(tokens, drawn);
    if (rollout.speculation.drafts()) plan.add_beside(draft_memory(draft_options(rollout, options), *service));
  }
  if (calls(context, "answers")) {
    const auto answering = answer_service(options.row_tokens, plan.own_shape(), weights_options(options).compute);
    plan.add_cache(answering);
    plan.add_inference({answering.max_batch_tokens});
    plan.add_tensors(0, shape.vocabulary * answering.max_batch_sequences);
    plan.add_generation_scratch(answering.max_batch_tokens, answering.max_batch_sequences);
  }
  for (const char* function : {"log_probs", "old_log_probs", "values", "score", "step_scores", "teacher_lists",
                               "divergence", "mismatched_log_probs", "mismatched_reference_log_probs"}) {
    if (!calls(context, function)) continue;
    Pass pass = micro_batch(options, micro_batch_tokens(train), at_most_rows(context.layout(function), options.rows));
    pass.context = context_of(context.layout(function));
    plan.add_inference(pass);
    const int64_t lists = plan.list_floats(pass.predicted, makes_lists(function) ? kScoredLists : 0);
    plan.add_tensors(pass.own_predicted() + pass.own_tokens() * plan.scoring_streams(), lists);
    plan.add_scoring_scratch(pass);
  }
  if (calls(context, "train")) {
    const int64_t update = train.samples_per_update == 0 ? options.rows.get() : train.samples_per_update.get();
    const int64_t unit = options.loss_rows->ends_with("pairs") ? 2 : 1;
    const graph::Layout layout = context.layout("train");
    Pass pass =
        micro_batch(options, micro_batch_tokens(train, options.loss_rows), at_most_rows(layout, update, unit), unit);
    pass.context = context_of(layout);
    plan.add_training(pass, recompute_of(train, layout.recompute));
    const int64_t lists =
        plan.list_floats(pass.predicted, options.loss_rows->starts_with("taught") ? kTrainedLists : 0);
    plan.add_tensors(pass.own_tokens() * plan.streams() + 2 * pass.own_predicted(), lists);
    plan.add_logits(pass.own_predicted());
    plan.add_training_scratch(pass, options.row_tokens);
    if (options.ptx_tokens > 0) add_texts(plan, options, train, layout);
  }
  return plan.items();
}

}  // namespace collimate::rlhf
