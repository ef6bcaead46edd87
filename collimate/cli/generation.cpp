#include "collimate/cli/generation.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/progress.h"
#include "collimate/generate/beam_search.h"
#include "collimate/generate/completion_text.h"
#include "collimate/host/hub_download.h"
#include "collimate/rlhf/modules/reward.h"

namespace collimate::cli {
namespace {

// Returns a list for each token of the completion, with the most likely tokens in its place and their log-probs.
nlohmann::ordered_json top_json(const generate::Completion& c) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < c.tokens.size(); ++i) {
    nlohmann::ordered_json one = nlohmann::ordered_json::array();
    for (const auto& top : generate::top_of(c.top_log_probs, c.tokens.size(), i)) {
      one.push_back({{"token_id", top.token}, {"logprob", top.log_prob}});
    }
    list.push_back(std::move(one));
  }
  return list;
}

void log_speculation(const generate::ServiceStats& stats) {
  base::log_info("speculation: {} of {} guessed tokens accepted, {} tokens decoded in {} steps", stats.accepted_tokens,
                 stats.proposed_tokens, stats.decoded_tokens, stats.steps);
}

void refuse_search(const GenerateCall& call) {
  if (call.sampling.beams.beams == 1) return;
  throw base::InputError(base::expectation("num_beams", "1 with ep, whose devices step together to draw",
                                           std::to_string(call.sampling.beams.beams), "tp or pp"));
}

// A Listener joins what the replicas of a team complete: it shows their progress and passes completions on in order.
class Listener {
 public:
  Listener(int64_t prompts, const generate::EngineOptions& options, const RankTeam& team,
           const std::function<void(const generate::Completion&)>& on_completion)
      : first_(options.first_completion),
        all_(prompts * options.samples_per_prompt),
        samples_(options.samples_per_prompt),
        team_(team),
        on_completion_(on_completion),
        progress_("generate", all_, first_),
        seen_(static_cast<size_t>(team.replicas())),
        next_(first_) {}

  // Returns the functions that a rank's engine calls. They throw once another rank has failed.
  generate::EngineListener of(const RankPlace& place) {
    if (!place.leads) return {.on_progress = [this](const auto&) { team_.check(); }};
    return {.on_progress = [this, replica = place.replica](const generate::Progress& p) { show(replica, p); },
            .on_completion = [this](const generate::Completion& c) { take(c); }};
  }
  void keep(std::vector<generate::Completion> made) {
    const std::lock_guard lock(mutex_);
    std::ranges::move(made, std::back_inserter(made_));
  }

  generate::ServiceStats stats() const {
    std::vector<generate::ServiceStats> parts;
    for (const generate::Progress& p : seen_) parts.push_back(p.service);
    return generate::total_of(parts);
  }
  std::vector<generate::Completion> completions() {
    const auto place = [](const generate::Completion& c) { return std::pair(c.prompt, c.sample); };
    std::ranges::sort(made_, {}, place);
    return std::move(made_);
  }

 private:
  void show(int replica, const generate::Progress& p) {
    team_.check();
    const std::lock_guard lock(mutex_);
    base::at(seen_, replica) = p;
    int64_t finished = 0, tokens = 0;
    for (const generate::Progress& one : seen_) finished += one.finished, tokens += one.tokens;
    if (finished - shown_ < std::max<int64_t>(1, (all_ - first_) / 20)) return;
    shown_ = finished;
    progress_.update(first_ + finished, fmt::format("{} tokens", tokens));
  }

  // Passes on all completions up to the first that is missing. A replica delivers its own in order, but completions of
  // other replicas may be missing between them.
  void take(const generate::Completion& completion) {
    if (!on_completion_) return;
    const std::lock_guard lock(mutex_);
    waiting_.emplace(completion.prompt * samples_ + completion.sample, completion);
    for (auto next = waiting_.begin(); next != waiting_.end() && next->first == next_; next = waiting_.erase(next)) {
      ++next_;
      on_completion_(next->second);
    }
  }

  const int64_t first_, all_, samples_;
  const RankTeam& team_;
  const std::function<void(const generate::Completion&)>& on_completion_;

  std::mutex mutex_;
  base::Progress progress_;
  std::vector<generate::Progress> seen_;  // by replica
  int64_t shown_ = 0, next_;
  std::map<int64_t, generate::Completion> waiting_;  // by number, until all before it are there
  std::vector<generate::Completion> made_;
};

}  // namespace

CompletingModel::CompletingModel(const GenerateCall& call)
    : call_(call),
      models_({.directory = host::model_directory(call.model, call.download),
               .compute = call.sampling.compute,
               .chat = call.sampling.chat,
               .latent_cache = call.sampling.latent_cache,
               .speculation = call.sampling.speculation,
               .measure_int8 = call.sampling.measure_int8},
              call.layout) {}

std::vector<generate::Completion> CompletingModel::complete(
    const std::vector<std::vector<int32_t>>& prompts, int64_t first,
    const std::function<void(const generate::Completion&)>& on_completion, generate::ServiceStats& stats) {
  RankTeam& team = models_.team();
  if (team.layout().ep > 1) refuse_search(call_);
  const generate::EngineOptions options{.service = {.kv_type = call_.sampling.kv_cache_dtype.type(),
                                                    .seed = call_.seed,
                                                    .speculation_tokens = call_.sampling.speculation.tokens()},
                                        .samples_per_prompt = call_.samples,
                                        .first_completion = first,
                                        .replicas = team.replicas()};
  Listener listener(std::ssize(prompts), options, team, on_completion);
  team.run([&](const RankPlace& place) {
    generate::EngineOptions own = options;
    own.service = models_.service(place, options.service);
    own.replica = place.replica;
    auto made = generate::complete_all(models_.of(place).open.model, prompts, call_.sampling.beams.params(),
                                       call_.params, own, listener.of(place));
    if (place.leads) listener.keep(std::move(made));
  });
  stats = listener.stats();
  if (options.service.speculation_tokens > 0) log_speculation(stats);
  return listener.completions();
}

nlohmann::ordered_json completion_json(const GenerateCall& call, const text::Tokenizer& tokenizer,
                                       const std::vector<int32_t>& prompt, const generate::Completion& completion) {
  nlohmann::ordered_json one = {
      {"completion", generate::completion_text(tokenizer, prompt, completion.tokens, call.params)},
      {"token_ids", completion.tokens},
      {"finish", generate::finish_reason(completion.finish)}};
  if (call.sampling.beams.beams > 1) one["score"] = completion.score;
  if (call.log_probs) one["logprobs"] = completion.log_probs;
  if (call.top_log_probs > 0) one["top_logprobs"] = top_json(completion);
  return one;
}

rlhf::RewardSample reward_sample(const text::Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
                                 const generate::Completion& completion, const nlohmann::json& columns) {
  rlhf::RewardSample sample = rlhf::decoded_sample(prompt, completion.tokens, tokenizer);
  sample.uid = completion.uid;
  sample.example = columns;
  sample.finished = !generate::cut_off(completion.finish);
  return sample;
}

}  // namespace collimate::cli
