#include "collimate/generate/beam_search.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/generate/block_pool.h"
#include "collimate/generate/forms.h"
#include "collimate/generate/params_check.h"
#include "collimate/generate/runner.h"
#include "collimate/generate/scheduler.h"
#include "collimate/generate/sequence.h"
#include "collimate/generate/token_ids.h"

namespace collimate::generate {
namespace {

constexpr const char* kSearch = "generate.num_beams";
constexpr const char* kGenerate = "generate";

// Returns the tokens that end a completion: the model's own, unless they are ignored, and those that are asked for.
std::vector<int32_t> search_ends(const SamplingParams& params, const ServiceOptions& service) {
  return ending_ids(params, params.ignore_eos ? std::span<const int32_t>() : service.eos_ids);
}

// Throws InputError for a parameter that says how tokens are drawn, as a search draws none. The parameters that act in
// a search are set to their defaults before.
void check_nothing_is_drawn(SamplingParams params) {
  const SamplingParams defaults;
  params.max_tokens = defaults.max_tokens;
  params.min_tokens = defaults.min_tokens;
  params.ignore_eos = defaults.ignore_eos;
  params.stop = defaults.stop;
  params.stop_ids = defaults.stop_ids;
  params.presence_penalty = defaults.presence_penalty;
  params.frequency_penalty = defaults.frequency_penalty;
  params.repetition_penalty = defaults.repetition_penalty;
  params.logit_bias = defaults.logit_bias;
  params.regex = defaults.regex;
  params.json_schema = defaults.json_schema;
  params.grammar = defaults.grammar;
  if (params.temperature == 0) params.temperature = defaults.temperature;
  const nlohmann::json given = params.to_json(), usual = defaults.to_json();
  for (const auto& [name, value] : given.items()) {
    if (usual.contains(name) && usual.at(name) == value) continue;
    throw base::InputError(base::expectation(kSearch, "1 beside " + name + ", which a search does not read",
                                             name + ": " + value.dump(), "leaving one of them out"));
  }
}

// The search in progress for one prompt.
struct Search {
  int64_t prompt = 0;
  Beams beams;
  std::vector<std::unique_ptr<Sequence>> live;  // by live beam, in order; at first the prompt alone
  std::vector<Beams::Likely> likely;            // by live beam: the likely tokens after it in this step
  std::string stuck = {};                       // why the latest beam that no token may follow was given up
};

// Returns whether the token would complete a stop text of the sequence.
bool completes_stop(const Sequence& sequence, int32_t token) {
  if (!sequence.text) return false;
  CompletionText text = *sequence.text;
  text.push(token);
  return text.stopped();
}

// Runs the beams of several prompts in steps. A step advances every beam of the searches that it runs by one token. Not
// thread-safe.
class Searcher {
 public:
  Searcher(model::Model& model, const ServiceOptions& service, int64_t slots, int64_t together, int64_t blocks_each)
      : service_(service),
        together_(together),
        pool_(slots * blocks_each),
        runner_(model, service.exec, pool_.size(), *service.kv_type, service.seed),
        forms_(service.tokenizer, model.shape().vocabulary, service.eos_ids) {
    stats_.slots = slots;
    runner_.score_top();
  }

  bool has_room() const { return std::ssize(searches_) < together_; }
  bool idle() const { return searches_.empty(); }

  // Starts the search of a prompt. Throws InputError if the form of the completions cannot be followed.
  void start(int64_t prompt, std::span<const int32_t> ids, Beams beams, const SamplingParams& params) {
    searches_.push_back(std::make_unique<Search>(Search{prompt, std::move(beams), {}, {}}));
    Search& search = *searches_.back();
    auto& first = search.live.emplace_back(std::make_unique<Sequence>());
    first->uid = prompt;
    first->ids.assign(ids.begin(), ids.end());
    first->prompt_tokens = first->length();
    first->params = params;
    first->params.temperature = 0;  // the cheapest draw, which nobody reads
    first->params.top_log_probs = search.beams.width();
    first->history.constraint = forms_.make(params, kGenerate);
    first->follow_from_start(service_.eos_ids, service_.tokenizer);
  }

  // Runs one step and passes the searches that are then done to `take`.
  template <class Take>
  void step(const Take& take) {
    plan_step();
    COLLIMATE_CHECK(!plan_.empty(), "{} searches wait and none can run", searches_.size());
    const std::span<const DrawnFor> drawn = runner_.run(plan_);
    for (const Run& run : plan_.runs) run.sequence->computed += run.count;
    count_step();
    auto next = drawn.begin();
    for (auto& search : searches_) {
      if (!draws_now(*search)) continue;
      search->likely.clear();
      for (size_t beam = 0; beam < search->live.size(); ++beam, ++next) {
        COLLIMATE_CHECK(next->sequence == search->live[beam].get(), "beams run in another order");
        const Drawn& drawn_after = next->drawn[0];
        search->likely.emplace_back();
        const LogitHistory& history = next->sequence->history;
        if (!history.stuck()) {
          search->likely.back() = {drawn_after.top, drawn_after.scores};
        } else {
          search->stuck = history.constraint->problem();
        }
      }
      const auto ends_text = [&](size_t beam, int32_t token) { return completes_stop(*search->live[beam], token); };
      branch(*search, search->beams.advance(search->likely, ends_text));
    }
    for (const auto& search : searches_)
      if (search->beams.done()) take(*search);
    std::erase_if(searches_, [](const auto& search) { return search->beams.done(); });
  }

  ServiceStats stats() const {
    ServiceStats stats = stats_;
    stats.blocks = pool_.size();
    stats.blocks_used = pool_.used();
    stats.blocks_peak = pool_.peak();
    stats.cache_bytes = runner_.cache().bytes();
    return stats;
  }

 private:
  // Plans a step, in which either all beams of a search run or none.
  void plan_step() {
    plan_.clear();
    int64_t room = service_.max_batch_tokens;
    for (auto& search : searches_) {
      if (room < std::ssize(search->live)) return;
      for (auto& sequence : search->live) {
        const int64_t count = std::min(sequence->pending(), room);
        const auto needed = static_cast<size_t>(blocks_for(sequence->computed + count));
        while (sequence->blocks.size() < needed) sequence->blocks.push_back(pool_.allocate());
        plan_.runs.push_back({sequence.get(), sequence->computed, count, count == sequence->pending()});
        room -= count;
      }
    }
  }

  // Returns whether the search was in the step and ran its last tokens, so that its beams advance.
  static bool draws_now(const Search& search) { return search.live.front()->pending() == 0; }

  void count_step() {
    ++stats_.steps;
    stats_.rows += std::ssize(plan_.runs);
    for (const Run& run : plan_.runs)
      (run.first < run.sequence->prompt_tokens ? stats_.prefill_tokens : stats_.decoded_tokens) += run.count;
  }

  // Makes the sequences of the live beams from those of their parents. The last child of a parent takes over its
  // sequence with its blocks, the others get copies.
  void branch(Search& search, const std::vector<size_t>& parents) {
    std::vector<int64_t> children(search.live.size(), 0);
    for (const size_t parent : parents) ++children[parent];
    for (size_t parent = 0; parent < children.size(); ++parent)
      if (children[parent] == 0) search.live[parent].reset();
    std::vector<std::unique_ptr<Sequence>> next;
    for (const size_t parent : parents) {
      auto& from = search.live[parent];
      next.push_back(--children[parent] > 0 ? twin(*from) : std::move(from));
    }
    search.live = std::move(next);
    for (size_t beam = 0; beam < search.live.size(); ++beam)
      follow(*search.live[beam], base::at(search.beams.live(), beam).tokens.back());
  }

  static void follow(Sequence& sequence, int32_t token) {
    sequence.ids.push_back(token);
    sequence.history.append(token);
    if (sequence.text) sequence.text->push(token);
  }

  // Returns a copy of the sequence that shares the full blocks. The block that will be written to, and the state of
  // stop texts and of the form, are copied.
  std::unique_ptr<Sequence> twin(const Sequence& from) {
    auto copy = std::make_unique<Sequence>();
    copy->uid = from.uid;
    copy->ids = from.ids;
    copy->prompt_tokens = from.prompt_tokens;
    copy->params = from.params;
    copy->history = from.history;
    if (from.history.constraint) copy->history.constraint = from.history.constraint->copy();
    if (from.text) copy->text.emplace(*from.text);
    copy->computed = from.computed;
    const int64_t full = from.computed / kBlockTokens;
    copy->blocks.assign(from.blocks.begin(), from.blocks.begin() + full);
    if (from.computed == from.prompt_tokens) stats_.shared_prompt_tokens += from.prompt_tokens;  // the first branching
    if (from.computed % kBlockTokens == 0) return copy;
    copy->blocks.push_back(pool_.allocate());
    runner_.copy_block(base::at(from.blocks, full).id(), copy->blocks.back().id());
    return copy;
  }

  const ServiceOptions& service_;
  int64_t together_;
  BlockPool pool_;  // declared before the searches, which hold its blocks
  Runner runner_;
  Forms forms_;
  std::vector<std::unique_ptr<Search>> searches_;
  StepPlan plan_;
  ServiceStats stats_;
};

void check_search(const BeamParams& beams, size_t ends, int64_t vocabulary, const EngineOptions& options) {
  const auto require = [](bool good, const std::string& where, const std::string& expected, int64_t got,
                          const std::string& remedy = "") {
    if (!good) throw base::InputError(base::expectation(where, expected, fmt::to_string(got), remedy));
  };
  const int64_t most =
      std::min(std::min(tensor::kMostTopTokens, vocabulary) / Beams::width(1, ends), options.service.max_batch_tokens);
  require(beams.beams >= 1 && beams.beams <= most, kSearch,
          fmt::format("1 to {} beams, with {} tokens that end a completion", most, ends), beams.beams);
  require(options.samples_per_prompt >= 1 && options.samples_per_prompt <= beams.beams, "generate.n",
          fmt::format("1 to {} completions of a prompt, as num_beams is {}", beams.beams, beams.beams),
          options.samples_per_prompt, fmt::format("num_beams: {}", options.samples_per_prompt));
  require(options.service.draft == nullptr && options.service.speculation_tokens == 0, kSearch,
          "1 beside speculation: a search guesses nothing", beams.beams);
}

void check_prompt(std::span<const int32_t> ids, int64_t number, int64_t vocabulary, int64_t longest) {
  const std::string where = fmt::format("generate.num_beams, prompt {}", number);
  if (ids.empty()) throw base::InputError(base::expectation(where, "a prompt of at least 1 token", "none"));
  if (std::ssize(ids) >= longest)
    throw base::InputError(base::expectation(where, fmt::format("a prompt of at most {} tokens", longest - 1),
                                             fmt::to_string(ids.size()), "a shorter prompt"));
  require_token_ids(ids, vocabulary, where);
}

// Returns how many of so many searches run together, each with `blocks_each` blocks for each of its beams, in the cache
// of `service`. The cache holds one search at least unless its size was asked for (`asked_blocks`, 0: it was not): then
// InputError is thrown where it holds none.
int64_t searches_together(const ServiceOptions& service, int64_t asked_blocks, int64_t beams, int64_t blocks_each,
                          int64_t searches) {
  const int64_t needed = beams * blocks_each;
  if (asked_blocks > 0 && asked_blocks < needed)
    throw base::InputError(base::expectation(
        "generate.cache_blocks",
        fmt::format("at least {}, for {} beams of up to {} tokens", needed, beams, blocks_each * kBlockTokens),
        fmt::to_string(asked_blocks), fmt::format("cache_blocks: {}, fewer beams or fewer max_tokens", needed)));
  return std::clamp(std::min(service.max_batch_sequences, service.cache_blocks / blocks_each) / beams, int64_t{1},
                    searches);
}

Finish search_finish(const Beams::Hypothesis& one, const SamplingParams& params, const ServiceOptions& service) {
  const auto has = [&](std::span<const int32_t> ids) { return std::ranges::find(ids, one.tokens.back()) != ids.end(); };
  if (!params.ignore_eos && has(service.eos_ids)) return Finish::kEos;
  return has(params.stop_ids) || one.by_text ? Finish::kStop : Finish::kLength;
}

// Fills a completion with the search's result for this sample, or with kError if the search found too few.
void fill(Completion& completion, std::span<const Beams::Hypothesis> found, const SamplingParams& params,
          const ServiceOptions& service) {
  if (completion.sample >= std::ssize(found)) {
    completion.score = -std::numeric_limits<float>::infinity();
    completion.finish = Finish::kError;
    return;
  }
  const Beams::Hypothesis& one = base::at(found, completion.sample);
  completion.tokens = one.tokens;
  completion.log_probs = one.log_probs;
  completion.score = one.score;
  completion.finish = search_finish(one, params, service);
}

// Warns if a search found too few completions, as Service does of draws that cannot go on.
void warn_of_missing(const Search& search, int64_t wanted) {
  const int64_t found = std::min(std::ssize(search.beams.ended()), wanted);
  if (found == wanted) return;
  base::log_warning("prompt {}: the search found {} of {} completions, as no beam can go on as its form demands: {}",
                    search.prompt, found, wanted, search.stuck);
}

}  // namespace

std::vector<Completion> beam_all(model::Model& model, std::span<const std::vector<int32_t>> prompts,
                                 const BeamParams& beams, const SamplingParams& params, EngineOptions options,
                                 const EngineListener& listener) {
  check_nothing_is_drawn(params);
  const shape::ModelShape& shape = model.shape();
  const int64_t asked_blocks = options.service.cache_blocks;
  options.service = resolved(std::move(options.service), shape, model.weights().options().compute);
  const ServiceOptions& service = options.service;
  const std::vector<int32_t> ends = search_ends(params, service);
  check_params(params, shape.vocabulary, service, kGenerate);
  check_search(beams, ends.size(), shape.vocabulary, options);
  std::vector<Completion> completions = empty_completions(prompts.size(), options);
  if (completions.empty()) return completions;
  const auto begin = static_cast<size_t>(completions.front().prompt);
  int64_t longest = 0;
  const auto every = static_cast<size_t>(options.replicas);
  for (size_t i = begin; i < prompts.size(); i += every) {
    check_prompt(prompts[i], static_cast<int64_t>(i), shape.vocabulary, service.max_sequence_tokens);
    longest = std::max(longest, std::ssize(prompts[i]));
  }
  // The last token is never run, and beams that do not go on give their blocks back before others are copied.
  const int64_t blocks_each = blocks_for(std::min(longest + params.max_tokens, service.max_sequence_tokens) - 1);
  const int64_t together = searches_together(service, asked_blocks, beams.beams, blocks_each,
                                             std::ssize(prompts) - static_cast<int64_t>(begin));
  Searcher searcher(model, service, together * beams.beams, together, blocks_each);
  Progress progress{.total = std::ssize(completions)};
  const auto take = [&](const Search& search) {
    warn_of_missing(search, options.samples_per_prompt);
    for (Completion& completion : completions) {
      if (completion.prompt != search.prompt) continue;
      fill(completion, search.beams.ended(), params, service);
      ++progress.finished;
      progress.tokens += std::ssize(completion.tokens);
    }
  };
  auto told = completions.begin();
  for (size_t next = begin; next < prompts.size() || !searcher.idle();) {
    for (; next < prompts.size() && searcher.has_room(); next += every) {
      const int64_t room = service.max_sequence_tokens - std::ssize(prompts[next]);
      searcher.start(static_cast<int64_t>(next), prompts[next], Beams(beams, std::min(params.max_tokens, room), ends),
                     params);
    }
    searcher.step(take);
    progress.service = searcher.stats();
    if (listener.on_progress) listener.on_progress(progress);
    for (; told != completions.end() && told->finish != Finish::kRunning; ++told)
      if (listener.on_completion) listener.on_completion(*told);
  }
  return completions;
}

std::vector<Completion> complete_all(model::Model& model, std::span<const std::vector<int32_t>> prompts,
                                     const BeamParams& beams, const SamplingParams& params, EngineOptions options,
                                     const EngineListener& listener) {
  if (beams.beams > 1) return beam_all(model, prompts, beams, params, std::move(options), listener);
  const BeamParams defaults;
  if (beams.length_penalty != defaults.length_penalty || beams.early != defaults.early)
    throw base::InputError(
        base::expectation(kSearch, "at least 2 beside length_penalty or early_stopping, which draws do not read", "1"));
  return generate_all(model, prompts, params, std::move(options), listener);
}

}  // namespace collimate::generate
