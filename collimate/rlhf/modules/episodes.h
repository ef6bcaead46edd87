#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "collimate/flow/metric.h"
#include "collimate/rlhf/reward/gym.h"
#include "collimate/rlhf/rollout/assemble.h"
#include "collimate/text/chat_template.h"

namespace collimate::rlhf {

// A sample that is drawn in turns. Between the policy's turns stand observations, which are not trained: their
// log-probs and versions are 0. No token that was drawn is ever made anew from text.
struct DrawnSample {
  Completion completion;
  nlohmann::json sampling;           // parameters of the whole sample; max_tokens holds for all turns and observations
  nlohmann::json example = nullptr;  // columns of its row of the data
  std::vector<uint8_t> drawn = {};   // [tokens] 1 where the policy drew the token
  size_t turn_begin = 0;             // of its present turn, in the completion's tokens
  int64_t episode = 0;               // number of its environment; 0 before the first turn has ended
  int64_t turns = 0;                 // that the environment has answered
  double reward = 0;                 // of these
  std::string error = {};            // why a step failed
};

// The samples whose turn is the environment's. Not thread-safe; it uses the tokenizer that the renderer has.
class Episodes {
 public:
  // Throws what Gym and Renderer::reply_tokens throw.
  Episodes(const GymSection& options, std::unique_ptr<text::Renderer> renderer);

  // Returns the sampling parameters of the sample's next turn, and the id of its request to the service.
  nlohmann::json turn_sampling(const DrawnSample& sample) const;
  static int64_t turn_uid(const DrawnSample& sample);

  // Says whether the environment answers the turn that has ended: the model or a stop text ended it, or it is as long
  // as a turn may be and the sample has room for more.
  static bool ends_turn(const DrawnSample& sample);
  void ask(DrawnSample sample);
  struct Answered {
    DrawnSample sample;
    bool over = false;  // otherwise the policy has the next turn, and its observation stands in the sample
  };
  // Returns samples that the environment has answered. With `wait` it waits a moment for the first.
  std::vector<Answered> take(bool wait);
  // Forgets samples that go on no longer, whoever has their turn, and ends their environments.
  void forget(std::span<const int64_t> uids);
  void forget_all();
  void end_environment(const DrawnSample& sample);
  bool waits() const { return !waiting_.empty(); }

  // Returns the rows of samples that are over: those of completion_rows() with a column `episode`.
  Batch rows(std::vector<DrawnSample> over, int64_t routed);
  // Returns the mean number of turns of the samples that were over since the last call, and failed steps.
  std::vector<flow::Metric> metrics();

 private:
  bool go_on(DrawnSample& sample, const GymReply& reply) const;
  void tell_failure(const GymReply& reply, const DrawnSample& sample);

  GymSection options_;
  std::unique_ptr<text::Renderer> renderer_;
  Gym gym_;
  std::map<int64_t, DrawnSample> waiting_;          // by episode
  std::set<int64_t> living_;                        // episodes whose environments have not ended
  int64_t episodes_ = 0;                            // that have begun
  bool told_ = false;                               // of a failed step
  int64_t samples_ = 0, turns_ = 0, failures_ = 0;  // since metrics()
};

}  // namespace collimate::rlhf
