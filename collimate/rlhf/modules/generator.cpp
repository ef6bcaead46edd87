#include "collimate/rlhf/modules/generator.h"

#include <algorithm>
#include <optional>

#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/comm/group.h"
#include "collimate/rlhf/modules/episodes.h"
#include "collimate/rlhf/modules/memory.h"
#include "collimate/rlhf/modules/service_options.h"
#include "collimate/rlhf/types/episode.h"
#include "collimate/rlhf/types/rounds.h"
#include "collimate/text/equal_tokens.h"

namespace collimate::rlhf {
namespace {

using generate::Emission;
using generate::Finish;
using generate::Service;

std::vector<int32_t> to_vector(std::span<const int32_t> ids) { return {ids.begin(), ids.end()}; }

constexpr uint32_t kDrawnPurpose = 0xd15;

// Chooses which rows get an answer drawn in place of the one that they have: a share of them, by the seed and their
// uids. Rows without a prompt, and rows that are cut before their answer, keep their text.
struct DrawnRows {
  double share = 1;
  uint64_t seed = 0;
  bool has(const Batch& rows, int64_t r) const {
    const auto uid = static_cast<uint64_t>(rows.get(batch::kUid, r));
    const int64_t prompt = rows.get(batch::kPromptTokens, r);
    return prompt > 0 && prompt < rows.length(batch::kIds.name, r) &&
           base::uniform(seed, kDrawnPurpose, uid, 0) < share;
  }
};

// Returns a row of data with its answer as if that had been drawn, with log-probs and versions of 0.
Completion answer_of(const Batch& rows, int64_t r) {
  const auto ids = rows.row(batch::kIds, r);
  const auto trainable = rows.row(batch::kTrainable, r);
  const int64_t prompt = rows.get(batch::kPromptTokens, r);
  Completion c{.uid = rows.get(batch::kUid, r),
               .prompt = {ids.begin(), ids.begin() + prompt},
               .tokens = {ids.begin() + prompt, ids.end()},
               .finish = static_cast<int32_t>(Finish::kStop),
               .trainable = {trainable.begin(), trainable.end()}};
  c.log_probs.resize(c.tokens.size());
  c.versions.resize(c.tokens.size());
  return c;
}

// One call of generate. It keeps the samples in flight, and those that are over since the last take().
class GenerateStream final : public flow::Stream {
 public:
  // `sampling` is for rows that bring none of their own, `routed` is that of completion_rows, and `weights` hold what
  // the service reads.
  GenerateStream(Service& service, nlohmann::json sampling, int64_t routed, std::vector<model::Weights::Held> weights)
      : service_(service), sampling_(std::move(sampling)), routed_(routed), weights_(std::move(weights)) {}
  // Says that rows have answers; those that `drawn` does not choose are kept.
  void keep_answers(const DrawnRows& drawn) { drawn_ = drawn; }
  // Has rows that say their round drawn up to its limit (limit_of_round); those that are finished are kept.
  void draw_in_rounds(std::vector<int64_t> limits) { limits_ = std::move(limits); }
  // Has rows drawn in turns with environments. `episodes` must outlive this.
  void take_turns(Episodes& episodes) { episodes_ = &episodes; }

  void feed(const Batch& given) override {
    in_rounds_ = !limits_.empty() && given.has(kRound.name);
    Batch rows = drawn_ ? prompts_of(given) : in_rounds_ ? unfinished_of(given) : given;
    if (rows.empty()) return;
    if (!rows.has(batch::kSampling.name))
      rows.set_json(batch::kSampling, std::vector<nlohmann::json>(rows.rows(), sampling_));
    if (in_rounds_) limit_to_rounds(rows);
    std::vector<nlohmann::json> of_turns;
    for (int64_t r = 0; r < rows.rows(); ++r) {
      const int64_t uid = rows.get(batch::kUid, r);
      DrawnSample& sample = running_[uid];
      sample.completion =
          in_rounds_ ? begun_sample(rows, r) : Completion{.uid = uid, .prompt = to_vector(rows.row(batch::kIds, r))};
      if (episodes_ == nullptr) continue;
      sample.sampling = rows.json(batch::kSampling, r);
      sample.example = rows.json(batch::kExample, r);
      of_turns.push_back(episodes_->turn_sampling(sample));
    }
    if (episodes_ != nullptr) rows.set_json(batch::kSampling, of_turns);
    service_.submit(rows);
  }

  void close() override { closed_ = true; }

  bool step() override {
    const bool worked = service_.step();
    collect();
    return go_on(!worked) || worked;
  }

  Batch take() override {
    if (finished_.empty()) return {};
    std::vector<DrawnSample> finished = std::exchange(finished_, {});
    if (episodes_ != nullptr) return episodes_->rows(std::move(finished), routed_);
    std::vector<Completion> completions;
    for (DrawnSample& sample : finished) completions.push_back(std::move(sample.completion));
    return completion_rows(completions, routed_);
  }

  bool done() const override {
    return closed_ && running_.empty() && finished_.empty() && (episodes_ == nullptr || !episodes_->waits());
  }

  void cancel(std::span<const int64_t> uids) override {
    if (episodes_ != nullptr) episodes_->forget(uids);
    std::vector<int64_t> requests;
    for (const auto& [request, sample] : running_) {
      if (std::ranges::find(uids, sample.completion.uid) == uids.end()) continue;
      requests.push_back(request);
      if (episodes_ != nullptr) episodes_->end_environment(sample);
    }
    service_.cancel(requests);
    collect();
  }
  void pause() override { service_.pause(); }
  void resume() override { service_.resume(); }

 private:
  // Returns the prompts of the rows whose answers are drawn; the other rows count as finished.
  Batch prompts_of(const Batch& given) {
    std::vector<int64_t> drawn;
    std::vector<std::vector<int32_t>> prompts;
    for (int64_t r = 0; r < given.rows(); ++r) {
      if (!drawn_->has(given, r)) {
        finished_.push_back({.completion = answer_of(given, r)});
        continue;
      }
      const auto ids = given.row(batch::kIds, r);
      prompts.emplace_back(ids.begin(), ids.begin() + given.get(batch::kPromptTokens, r));
      drawn.push_back(r);
    }
    if (drawn.empty()) return {};
    Batch rows = given.gather(drawn);
    rows.set_ragged(batch::kIds, prompts);
    return rows;
  }

  // Returns the rows that are not finished; the others count as finished.
  Batch unfinished_of(const Batch& given) {
    std::vector<int64_t> unfinished;
    for (int64_t r = 0; r < given.rows(); ++r) {
      if (given.get(batch::kFinish, r) == kUnfinished)
        unfinished.push_back(r);
      else
        finished_.push_back({.completion = begun_sample(given, r)});
    }
    return given.gather(unfinished);
  }

  // Has the service go on behind what was drawn, up to the limit of each row's round.
  void limit_to_rounds(Batch& rows) const {
    std::vector<nlohmann::json> sampling;
    std::vector<int64_t> drawn;
    for (int64_t r = 0; r < rows.rows(); ++r) {
      const int64_t limit = limit_of_round(limits_, rows.get(kRound, r));
      sampling.push_back(sampling_of_round(rows.json(batch::kSampling, r), limit));
      drawn.push_back(rows.length(batch::kIds.name, r) - rows.get(batch::kPromptTokens, r));
    }
    rows.set_json(batch::kSampling, std::move(sampling));
    rows.set(generate::kDrawnTokens, std::move(drawn));
  }

  // Says whether the limit of a round alone has ended the sample, which then goes on in the next iteration.
  bool goes_on(const Completion& c) const {
    return in_rounds_ && c.finish == static_cast<int32_t>(Finish::kLength) && std::ssize(c.tokens) < limits_.back();
  }

  void collect() {
    for (const Emission& emission : service_.take()) {
      const auto found = running_.find(emission.uid);
      if (found == running_.end()) continue;  // cancelled meanwhile
      Completion& c = found->second.completion;
      c.tokens.insert(c.tokens.end(), emission.tokens.begin(), emission.tokens.end());
      c.log_probs.insert(c.log_probs.end(), emission.log_probs.begin(), emission.log_probs.end());
      c.versions.insert(c.versions.end(), emission.versions.begin(), emission.versions.end());
      if (emission.finish == Finish::kRunning) continue;
      c.routed_experts = emission.routed_experts;
      c.finish = static_cast<int32_t>(emission.finish);
      if (goes_on(c)) c.finish = kUnfinished;
      if (episodes_ != nullptr && Episodes::ends_turn(found->second))
        episodes_->ask(std::move(found->second));
      else if (emission.finish != Finish::kCancelled)
        finished_.push_back(std::move(found->second));
      running_.erase(found);
    }
  }

  // Takes what environments have answered, and has the next turns drawn. Where there was nothing else to do (`idle`) it
  // waits a moment for an answer. Returns whether environments have something to do, so that there is more to come.
  bool go_on(bool idle) {
    if (episodes_ == nullptr || !episodes_->waits()) return false;
    std::vector<DrawnSample> next;
    for (Episodes::Answered& answered : episodes_->take(idle))
      (answered.over ? finished_ : next).push_back(std::move(answered.sample));
    if (!next.empty()) draw_turns(std::move(next));
    return true;
  }

  void draw_turns(std::vector<DrawnSample> samples) {
    std::vector<int64_t> requests;
    std::vector<std::vector<int32_t>> prompts;
    std::vector<nlohmann::json> sampling;
    for (DrawnSample& sample : samples) {
      requests.push_back(Episodes::turn_uid(sample));
      prompts.push_back(sample.completion.prompt);
      prompts.back().insert(prompts.back().end(), sample.completion.tokens.begin(), sample.completion.tokens.end());
      sampling.push_back(episodes_->turn_sampling(sample));
      running_.insert_or_assign(requests.back(), std::move(sample));
    }
    Batch rows;
    rows.set(batch::kUid, requests);
    rows.set_ragged(batch::kIds, prompts);
    rows.set_json(batch::kSampling, sampling);
    service_.submit(rows);
  }

  Service& service_;
  nlohmann::json sampling_;
  int64_t routed_;
  std::optional<DrawnRows> drawn_;
  std::vector<int64_t> limits_;  // of rounds; empty: there are none
  bool in_rounds_ = false;       // the rows are drawn in rounds
  // Ranks that share weights gather them together when they open their streams, which all of them do for the same task;
  // each gives them back by itself. Nothing is exchanged in between, so that ranks may have unlike rows, or none.
  std::vector<model::Weights::Held> weights_;
  bool closed_ = false;
  Episodes* episodes_ = nullptr;
  std::map<int64_t, DrawnSample> running_;  // by the uid of its request, which is the sample's own in its first turn
  std::vector<DrawnSample> finished_;
};

// Returns the options of the service that generates. The placement too may limit how many rows decode at once.
generate::ServiceOptions service_of(const RolloutOptions& rollout, const DecoderOptions& options,
                                    const flow::Context& context) {
  generate::ServiceOptions service = service_options(rollout);
  if (const int64_t rows = context.layout("generate").micro_batch; rows > 0)
    service.max_batch_sequences = std::min(service.max_batch_sequences, rows);
  service.max_sequence_tokens = options.row_tokens;
  return with_cache(std::move(service), options.rows, own_shape(options, model_ranks(context)),
                    weights_options(options).compute);
}

}  // namespace

GeneratorModule::GeneratorModule(const nlohmann::json& parameters) : ScorerModule(parameters) {}

std::vector<graph::FunctionSpec> GeneratorModule::functions() const {
  std::vector<graph::FunctionSpec> specs = ScorerModule::functions();
  std::vector<graph::Column> needs = {"uid", "prompt_uid", "ids"};
  if (options().drawn_share.get()) needs.insert(needs.end(), {"trainable", "prompt_tokens"});
  graph::FunctionSpec generate{.name = "generate",
                               .kind = graph::Kind::kGenerate,
                               .needs = needs,
                               .makes = {"ids", "trainable", "log_probs", "weights_version", "finish", "prompt_tokens"},
                               .granularity = graph::Granularity::kRow,
                               .streams = true,
                               .cost = {.forward_passes = 1, .columns = {"ids"}}};
  if (takes_turns()) {
    generate.needs.push_back("example");
    generate.makes.push_back(kEpisode.name);
    generate.deterministic = gym().deterministic;
  }
  specs.insert(specs.begin(), std::move(generate));
  return specs;
}

std::vector<tensor::MemoryItem> GeneratorModule::memory(const flow::Context& context) const {
  const generate::ServiceOptions service =
      service_of(read_section<RolloutOptions>(context, "rollout"), options(), context);
  return decoder_memory(context, options(), &service);
}

bool GeneratorModule::keeps_state(const flow::Context& context) const {
  return context.placement.staleness > 0 && !options().trained;
}

void GeneratorModule::setup(flow::Context& context) {
  ScorerModule::setup(context);
  saves_weights_ = keeps_state(context);
  const comm::Group* copies = context.copies("generate");
  if (copies != nullptr && copies->rank() > 0 && !decoder().weights->shares().several() &&
      !decoder().weights->experts().several())
    saved_shares_.resize(static_cast<size_t>(decoder().weights->segments()));  // empty: the first copy saves all
  rollout_ = read_section<RolloutOptions>(context, "rollout");
  generate::ServiceOptions service = service_of(rollout_, options(), context);
  service.seed = seed_ = context.seed;
  service.exec = decoder().exec;
  tokenizer_ = text::load_tokenizer(options().path);
  service.tokenizer = tokenizer_.get();
  service.eos_ids = tokenizer_->info().stop_ids;
  service.routed_experts = routes() != train::RecordedRoutes::kIgnored;
  routed_ = service.routed_experts ? model::routed_width(decoder().model->shape()) : 0;
  if (rollout_.speculation.drafts()) {
    const DecoderOptions draft = draft_options(rollout_, options());
    text::require_equal_tokens(*tokenizer_, *text::load_tokenizer(draft.path), "draft_model");
    draft_ = open_decoder(context, draft);
    if (context.placement.swaps(context.model)) draft_->away = away_file(context);
    draft_->come();
    service.draft = draft_->model.get();
  }
  service_ = std::make_unique<Service>(*decoder().model, service);
  if (takes_turns()) begin_episodes(context);
}

GymSection GeneratorModule::gym() const { return read_entry<GymSection>(options().gym); }

void GeneratorModule::begin_episodes(const flow::Context& context) {
  // Ranks that step together would have to agree on when an environment has answered.
  const model::ModelRanks ranks = model_ranks(context);
  if (ranks.tensor.several() || ranks.stages.several() || ranks.experts.several())
    throw base::InputError(
        base::expectation("reward.gym", fmt::format("{} to generate on ranks that have it whole", context.model),
                          "a layout in which ranks share it", "a placement without tp, pp and ep where it generates"));
  auto chat = text::make_chat_template(*tokenizer_, options().chat_template, options().chat_template_kwargs.get());
  episodes_ = std::make_unique<Episodes>(gym(), std::make_unique<text::Renderer>(*tokenizer_, std::move(chat)));
}

std::unique_ptr<flow::Stream> GeneratorModule::open(const std::string& function, const flow::CallInfo&) {
  COLLIMATE_CHECK(function == "generate", "generator does not stream {}", function);
  if (service_->version() != decoder().weights->version()) service_->update(decoder().weights->version());
  auto stream = std::make_unique<GenerateStream>(*service_, rollout_.params(rollout_.completion_tokens).to_json(),
                                                 routed_, decoder().weights->hold_for_inference());
  stream->draw_in_rounds(rollout_.round_limits());
  if (const std::optional<double> share = options().drawn_share) stream->keep_answers({*share, seed_});
  if (episodes_ != nullptr) {
    episodes_->forget_all();  // of a stream that was ended early
    stream->take_turns(*episodes_);
  }
  return stream;
}

void GeneratorModule::save(base::StateWriter& out) const {
  if (saves_weights_) decoder().weights->save(out, saved_shares_);
}

// A checkpoint has no weights here if generation had the trainer's weights when it was saved.
void GeneratorModule::load(base::StateReader& in) {
  if (saves_weights_ && in.has("version")) decoder().weights->load(in);
}

// When the module leaves the device, the memory of keys and values is given back; they are computed again when needed.
void GeneratorModule::reside(bool on_device) {
  if (!on_device) service_->release();
  ScorerModule::reside(on_device);
  if (draft_ != nullptr) on_device ? draft_->come() : draft_->leave();
}

std::vector<flow::Metric> GeneratorModule::metrics() {
  using Counts = generate::ServiceCounts;
  const Counts now = service_->stats();
  const auto since = [&](int64_t Counts::*field) { return static_cast<double>(now.*field - last_.*field); };
  std::vector<flow::Metric> out = {
      {"rollout/prefill_tokens", since(&Counts::prefill_tokens), flow::Reduce::kSum},
      {"rollout/shared_prompt_tokens", since(&Counts::shared_prompt_tokens), flow::Reduce::kSum},
      {"rollout/decoded_tokens", since(&Counts::decoded_tokens), flow::Reduce::kSum},
      {"rollout/steps", since(&Counts::steps), flow::Reduce::kSum},
      {"rollout/preemptions", since(&Counts::preemptions), flow::Reduce::kSum}};
  if (rollout_.speculation.tokens() > 0) {
    out.push_back({"rollout/proposed_tokens", since(&Counts::proposed_tokens), flow::Reduce::kSum});
    out.push_back({"rollout/accepted_tokens", since(&Counts::accepted_tokens), flow::Reduce::kSum});
  }
  last_ = now;
  if (episodes_ != nullptr)
    for (flow::Metric& metric : episodes_->metrics()) out.push_back(std::move(metric));
  return out;
}

}  // namespace collimate::rlhf
