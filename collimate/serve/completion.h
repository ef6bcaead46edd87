#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/generate/completion_text.h"
#include "collimate/serve/channel.h"
#include "collimate/text/tokenizer.h"
#include "collimate/text/tool_calls.h"

namespace collimate::serve {

// A Delta is what one choice of a request gained since the last look.
struct Delta {
  int64_t choice = 0;
  std::string text;             // whole characters, well-formed UTF-8
  std::vector<int32_t> tokens;  // all that were drawn, with the one that ended the choice; text may lag behind them
  std::vector<float> log_probs;
  std::vector<generate::TokenLogProb> top_log_probs;  // [tokens, k] as in generate::Emission
  std::string thoughts;                               // taken out of the text, if the answer's form marks them
  std::vector<text::ToolCall> calls;                  // taken out of the text, if the request has tools
  std::string finish_reason;  // last Delta: "stop", "length", "timeout", "error" or "tool_calls"; else empty
};

// A ChoiceText turns one choice's tokens into the text that a client is shown, as generate::CompletionText does,
// without the end of sequence or stop id that ended it. Stop strings are found here, whether the engine knows them or
// not.
class ChoiceText {
 public:
  // Keeps a reference to the tokenizer. `shown` are special tokens that are shown all the same.
  ChoiceText(const text::Tokenizer& tokenizer, const generate::SamplingParams& params, std::span<const int32_t> prompt,
             std::vector<int32_t> shown = {})
      : text_(tokenizer, params, prompt, std::move(shown)), stop_ids_(params.stop_ids) {}

  // Reads a piece and leaves out tokens behind a stop string. Returns an empty Delta once finished.
  Delta read(const Piece& piece);
  bool finished() const { return finished_; }
  // Returns whether the text ended by a stop string. The engine may then still draw tokens.
  bool stopped_by_text() const { return text_.stopped(); }

 private:
  bool is_end(generate::Finish finish, int32_t last) const;

  generate::CompletionText text_;
  std::vector<int32_t> stop_ids_;
  bool finished_ = false;
};

// Completions take one request's choices from its channel as text. Use them from one thread.
class Completions : private base::Immovable {
 public:
  // Takes the prompts in the order of their choices, of which each has equally many. `shown` are special tokens that
  // are shown all the same.
  Completions(std::shared_ptr<Channel> channel, const text::Tokenizer& tokenizer,
              const generate::SamplingParams& params, std::span<const std::vector<int32_t>> prompts,
              const std::vector<int32_t>& shown = {});
  ~Completions();  // cancels what is unfinished

  // Waits until there is something new and returns it, nothing when the deadline passed first. Rethrows what the
  // request failed with.
  std::vector<Delta> next(const base::Deadline& deadline);
  bool finished() const { return running_ == 0; }
  Channel& channel() { return *channel_; }

 private:
  std::shared_ptr<Channel> channel_;
  std::vector<ChoiceText> texts_;
  int64_t running_;
};

}  // namespace collimate::serve
