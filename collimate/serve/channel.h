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

// A Piece is what one choice of a request got since the reader last took it.
struct Piece {
  int64_t choice = 0;
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;
  std::vector<generate::TokenLogProb> top_log_probs;  // [tokens, k] as in generate::Emission
  generate::Finish finish = generate::Finish::kRunning;
};

// A Channel brings the tokens of one request from the engine to its reader. The engine's thread pushes and never waits;
// one reader takes. A channel keeps at most `capacity_tokens` tokens of all choices together, and the request fails if
// its reader leaves more unread. Without a capacity it keeps everything, as the engine bounds a completion.
// Thread-safe.
class Channel {
 public:
  Channel(int64_t choices, std::optional<int64_t> capacity_tokens);

  // The engine's thread calls these.

  // Tells the reader that the request is valid and will run, with the log-probs of each prompt if it asked for them.
  void accept(std::vector<generate::PromptLogProbs> prompt_log_probs);
  // Adds what a choice got. Returns false if the request has failed; it fails with RunError when the reader has left
  // more than the capacity unread.
  bool push(int64_t choice, const generate::Emission& emission);
  // Fails the request: wait_accepted() rethrows the first cause, and so does take() once nothing is left to take.
  void fail(std::exception_ptr cause);
  // Returns whether somebody still reads this choice.
  bool wanted(int64_t choice) const;

  // The reader calls these.

  // Waits until the request is accepted. Returns false when the deadline passed first. Rethrows what it failed with.
  bool wait_accepted(const base::Deadline& deadline);
  // Waits until there is something new and takes it, one piece for each choice that got something. Returns nothing when
  // the deadline passed first. Rethrows what the request failed with.
  std::vector<Piece> take(const base::Deadline& deadline);
  // Say that nothing more of this choice, or of any choice, is wanted. The engine then cancels them.
  void drop(int64_t choice);
  void drop_all();
  // Gives the log-probs of each prompt; valid once accepted.
  const std::vector<generate::PromptLogProbs>& prompt_log_probs() const { return prompt_log_probs_; }

  int64_t choices() const { return static_cast<int64_t>(dropped_.size()); }

 private:
  const std::optional<int64_t> capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // the engine wakes the reader
  std::vector<Piece> pieces_;        // not yet taken, at most one for a choice
  std::vector<char> dropped_;        // by choice
  std::vector<generate::PromptLogProbs> prompt_log_probs_;
  std::exception_ptr cause_;
  int64_t tokens_ = 0;  // pushed since the last take(), without those of choices dropped since
  bool accepted_ = false;
};

}  // namespace collimate::serve
