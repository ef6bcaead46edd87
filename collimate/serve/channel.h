#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <vector>

#include "collimate/base/deadline.h"
#include "collimate/generate/prompt_score.h"
#include "collimate/generate/service.h"

namespace collimate::serve {

// One choice of a request got this piece since it was last taken.
struct Piece {
  int64_t choice = 0;
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;
  std::vector<generate::TokenLogProb> top_log_probs;  // [tokens, k] as in generate::Emission
  generate::Finish finish = generate::Finish::kRunning;
};

// One request gets its tokens from the engine by a channel: the engine's thread puts in and never waits, one reader
// takes. It keeps at most `capacity_tokens` of all choices together; the request of a reader that leaves more lying
// fails. Without a capacity it keeps what comes: the engine bounds a completion. Thread-safe.
class Channel {
 public:
  Channel(int64_t choices, std::optional<int64_t> capacity_tokens);

  // The engine's side.
  // The request is valid and will run. `prompt_log_probs`: of each prompt, where the request asked for them.
  void accept(std::vector<generate::PromptLogProbs> prompt_log_probs);
  // False when the reader has let too much lie: the request has then failed with RunError.
  bool push(int64_t choice, const generate::Emission& emission);
  // take and wait_accepted rethrow the first cause. A choice that has finished keeps what it has.
  void fail(std::exception_ptr cause);
  // Whether anybody still reads this choice.
  bool wanted(int64_t choice) const;

  // The reader's side.
  // False when the deadline passed first. Rethrows what the request failed with.
  bool wait_accepted(const base::Deadline& deadline);
  // Takes what is new, one piece for each choice that has something; waits for it, empty when the deadline passed
  // first. Rethrows what the request failed with.
  std::vector<Piece> take(const base::Deadline& deadline);
  // Nothing more of this choice, or of all, is wanted: the engine cancels them.
  void drop(int64_t choice);
  void drop_all();
  // Gives the log-probs of each prompt; valid once accepted.
  const std::vector<generate::PromptLogProbs>& prompt_log_probs() const { return prompt_log_probs_; }

  int64_t choices() const { return static_cast<int64_t>(dropped_.size()); }

 private:
  const std::optional<int64_t> capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // the engine wakes the reader
  std::vector<Piece> pieces_;        // not yet taken, at most one of a choice
  std::vector<char> dropped_;        // by choice
  std::vector<generate::PromptLogProbs> prompt_log_probs_;
  std::exception_ptr cause_;
  int64_t tokens_ = 0;  // in pieces_
  bool accepted_ = false;
};

}  // namespace collimate::serve
