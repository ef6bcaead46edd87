#include "collimate/rlhf/modules/episodes.h"

#include <algorithm>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/philox.h"
#include "collimate/generate/completion_text.h"
#include "collimate/generate/service.h"
#include "collimate/rlhf/types/episode.h"
#include "collimate/text/utf8.h"

namespace collimate::rlhf {
namespace {

using generate::Finish;

int64_t most_tokens(const DrawnSample& sample) { return sample.sampling.at("max_tokens").get<int64_t>(); }

int64_t left_tokens(const DrawnSample& sample) {
  return most_tokens(sample) - static_cast<int64_t>(sample.completion.tokens.size());
}

// Returns the text of the sample's present turn, as rewards see completions.
std::string turn_text(const DrawnSample& sample, const text::Tokenizer& tokenizer) {
  const Completion& c = sample.completion;
  std::vector<int32_t> before = c.prompt;
  before.insert(before.end(), c.tokens.begin(), c.tokens.begin() + static_cast<std::ptrdiff_t>(sample.turn_begin));
  return text::valid_utf8(
      generate::completion_text(tokenizer, before, std::span(c.tokens).subspan(sample.turn_begin), {}));
}

// Adds tokens that are not the policy's.
void observe(DrawnSample& sample, std::vector<int32_t> ids) {
  Completion& c = sample.completion;
  if (const auto room = static_cast<size_t>(std::max<int64_t>(left_tokens(sample), 0)); ids.size() > room)
    ids.resize(room);
  c.tokens.insert(c.tokens.end(), ids.begin(), ids.end());
  c.log_probs.resize(c.tokens.size(), 0.F);
  c.versions.resize(c.tokens.size(), 0);
  sample.drawn.resize(c.tokens.size(), 0);
  sample.turn_begin = c.tokens.size();
}

}  // namespace

Episodes::Episodes(const GymSection& options, std::unique_ptr<text::Renderer> renderer)
    : options_(options), renderer_(std::move(renderer)), gym_(options) {
  const std::vector<int32_t> prompt = renderer_->prompt_tokens(text::Conversation{{{"user", "a"}}});
  renderer_->reply_tokens({options_.role, "a"}, prompt, -1);  // refuses a role that the template does not have
}

nlohmann::json Episodes::turn_sampling(const DrawnSample& sample) const {
  nlohmann::json sampling = sample.sampling;
  const int64_t most = std::min(left_tokens(sample), options_.turn_tokens->value_or(left_tokens(sample)));
  sampling["max_tokens"] = most;
  if (sampling.contains("min_tokens")) {  // of the whole completion
    const int64_t missing = sampling["min_tokens"].get<int64_t>() - std::ssize(sample.completion.tokens);
    sampling["min_tokens"] = std::clamp<int64_t>(missing, 0, most);
  }
  return sampling;
}

int64_t Episodes::turn_uid(const DrawnSample& sample) {
  const int64_t uid = sample.completion.uid;
  // Each turn has draws of its own; the first has those of a sample without an environment.
  return sample.turns == 0 ? uid : static_cast<int64_t>(base::stable_hash(fmt::format("{} {}", uid, sample.turns)));
}

bool Episodes::ends_turn(const DrawnSample& sample) {
  const auto finish = static_cast<Finish>(sample.completion.finish);
  return finish == Finish::kEos || finish == Finish::kStop || (finish == Finish::kLength && left_tokens(sample) > 0);
}

void Episodes::ask(DrawnSample sample) {
  const Completion& c = sample.completion;
  sample.drawn.resize(c.tokens.size(), 1);
  if (sample.episode == 0) living_.insert(sample.episode = ++episodes_);
  GymTurn turn{
      .episode = sample.episode, .completion = turn_text(sample, renderer_->tokenizer()), .first = sample.turns == 0};
  if (turn.first) {
    turn.prompt = text::valid_utf8(renderer_->tokenizer().decode(c.prompt));
    turn.example = sample.example;
  }
  gym_.step(std::move(turn));
  waiting_.insert_or_assign(sample.episode, std::move(sample));
}

// Adds a reply to its sample. Returns false where the sample is over.
bool Episodes::go_on(DrawnSample& sample, const GymReply& reply) const {
  Completion& c = sample.completion;
  ++sample.turns;
  if (!reply.error.empty()) {
    sample.error = reply.error;
    c.finish = static_cast<int32_t>(Finish::kError);
    return false;
  }
  sample.reward += reply.reward;
  if (reply.done || !reply.observation) {
    if (c.finish == static_cast<int32_t>(Finish::kLength)) c.finish = static_cast<int32_t>(Finish::kStop);
    return false;
  }
  const int32_t last = c.tokens.empty() ? -1 : c.tokens.back();
  if (sample.turns < options_.max_turns)
    observe(sample, renderer_->reply_tokens({options_.role, text::valid_utf8(*reply.observation)}, c.prompt, last));
  if (sample.turns < options_.max_turns && left_tokens(sample) > 0) return true;
  c.finish = static_cast<int32_t>(Finish::kLength);
  return false;
}

void Episodes::tell_failure(const GymReply& reply, const DrawnSample& sample) {
  if (std::exchange(told_, true)) return;
  const std::string turn = turn_text(sample, renderer_->tokenizer());
  base::log_warning("reward.gym: a step failed, which is told once: {}\n{}completion: {}", reply.error, reply.trace,
                    nlohmann::json(turn).dump());
}

std::vector<Episodes::Answered> Episodes::take(bool wait) {
  constexpr double kWaitSeconds = 0.05;
  std::vector<Answered> answered;
  for (const GymReply& reply : gym_.take(wait ? kWaitSeconds : 0)) {
    const auto found = waiting_.find(reply.episode);
    if (found == waiting_.end()) continue;  // forgotten meanwhile
    if (!reply.error.empty()) tell_failure(reply, found->second);
    Answered& next = answered.emplace_back(Answered{.sample = std::move(found->second)});
    waiting_.erase(found);
    next.over = !go_on(next.sample, reply);
    if (reply.done || !reply.error.empty()) living_.erase(reply.episode);  // it has ended by itself
    if (next.over) end_environment(next.sample);
  }
  return answered;
}

void Episodes::end_environment(const DrawnSample& sample) {
  if (living_.erase(sample.episode) > 0) gym_.forget({sample.episode});
}

void Episodes::forget(std::span<const int64_t> uids) {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto one = next++;
    if (std::ranges::find(uids, one->second.completion.uid) == uids.end()) continue;
    end_environment(one->second);
    waiting_.erase(one);
  }
}

void Episodes::forget_all() {
  waiting_.clear();
  gym_.forget({living_.begin(), living_.end()});
  living_.clear();
}

Batch Episodes::rows(std::vector<DrawnSample> over, int64_t routed) {
  std::vector<Completion> completions;
  std::vector<nlohmann::json> episodes;
  for (DrawnSample& sample : over) {
    Completion& c = sample.completion;
    sample.drawn.resize(c.tokens.size(), 1);
    c.trainable.assign(c.prompt.size(), 0);
    c.trainable.insert(c.trainable.end(), sample.drawn.begin(), sample.drawn.end());
    end_environment(sample);  // of one that was cut off in its own turn
    nlohmann::json& episode = episodes.emplace_back(nlohmann::json{{"turns", sample.turns}, {"reward", sample.reward}});
    if (!sample.error.empty()) episode = {{"turns", sample.turns}, {"error", sample.error}};
    completions.push_back(std::move(c));
    ++samples_;
    turns_ += sample.turns;
    if (!sample.error.empty()) ++failures_;
  }
  Batch rows = completion_rows(completions, routed);
  rows.set_json(kEpisode, episodes);
  return rows;
}

std::vector<flow::Metric> Episodes::metrics() {
  std::vector<flow::Metric> out{{"rollout/failed_steps", static_cast<double>(failures_), flow::Reduce::kSum}};
  if (samples_ > 0)
    out.push_back({"rollout/turns/mean", static_cast<double>(turns_) / static_cast<double>(samples_),
                   flow::Reduce::kMean, static_cast<double>(samples_)});
  samples_ = turns_ = failures_ = 0;
  return out;
}

}  // namespace collimate::rlhf
