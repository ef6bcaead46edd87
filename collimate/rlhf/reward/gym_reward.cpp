#include "collimate/rlhf/reward/gym_reward.h"

#include <utility>

#include "collimate/base/characters.h"
#include "collimate/base/log.h"
#include "collimate/rlhf/reward/gym.h"

namespace collimate::rlhf {
namespace {

using nlohmann::json;

class GymReward final : public Reward {
 public:
  explicit GymReward(const GymSection& options) : options_(options) {}

  std::vector<RewardResult> score(const std::vector<RewardSample>& samples) override {
    std::vector<RewardResult> results;
    for (const RewardSample& sample : samples) {
      results.push_back(sample.episode.is_null() ? one_step(sample) : result_of(sample.episode));
      progress();
    }
    return results;
  }

 private:
  static RewardResult result_of(const json& episode) {
    if (episode.contains("error")) return {std::nullopt, episode.at("error").get<std::string>()};
    return {episode.at("reward").get<double>(), ""};
  }

  static std::string note_of(const GymReply& reply) {
    constexpr size_t kShown = 80;  // bytes of an observation
    if (!reply.observation) return " and ends";
    return fmt::format(" and reads {}", json(base::beginning_of(*reply.observation, kShown)).dump());
  }

  RewardResult one_step(const RewardSample& sample) {
    constexpr double kLookSeconds = 0.1;
    gym().step({++steps_, sample.completion, true, sample.prompt, sample.example});
    std::vector<GymReply> replies;
    while ((replies = gym().take(kLookSeconds)).empty()) progress();
    gym().forget({steps_});
    GymReply& reply = replies.front();
    if (reply.error.empty()) return {.value = reply.reward, .error = "", .steps = {}, .note = note_of(reply)};
    if (told_of_raise() && !reply.trace.empty())
      told_of_raise()(reply.trace + "prompt: " + json(sample.prompt).dump() +
                      "\ncompletion: " + json(sample.completion).dump());
    return {std::nullopt, std::move(reply.error)};
  }

  // Returns the environments of trials, whose processes start when they are first asked.
  Gym& gym() {
    if (gym_) return *gym_;
    gym_ = std::make_unique<Gym>(options_);
    if (gym_->has_reset())
      base::log_warning(
          "reward.gym: the method reset of {} is never called: each sample has an object of its own, and "
          "its prompt is what the policy reads first; try doing in __init__ what reset does",
          options_.gym.get());
    return *gym_;
  }

  GymSection options_;
  std::unique_ptr<Gym> gym_;
  int64_t steps_ = 0;  // also the episodes of trials
};

}  // namespace

std::unique_ptr<Reward> gym_reward(const GymSection& options) { return std::make_unique<GymReward>(options); }

}  // namespace collimate::rlhf
