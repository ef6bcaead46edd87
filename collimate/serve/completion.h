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

// One choice of a request became this since the last look.
struct Delta {
  int64_t choice = 0;
  std::string text;             // whole characters, well-formed UTF-8
  std::vector<int32_t> tokens;  // all that were drawn, the one that ended it too; text may lag behind them
  std::vector<float> log_probs;
  std::vector<generate::TokenLogProb> top_log_probs;  // [tokens, k] as in generate::Emission
  std::string thoughts;                               // read out of the text of a form that tells them apart
  std::vector<text::ToolCall> calls;                  // read out of the text, where the request has tools
  std::string finish_reason;  // "stop", "length", "timeout" or "tool_calls" on the last one, else empty
};

// Turns one choice's tokens into what a client is shown: generate::CompletionText without an end of sequence or stop id
// that ended it. Stop strings may be the engine's too or be found here alone.
class ChoiceText {
 public:
  // Keeps a reference to the tokenizer. `shown`: as of generate::CompletionText.
  ChoiceText(const text::Tokenizer& tokenizer, const generate::SamplingParams& params, std::span<const int32_t> prompt,
             std::vector<int32_t> shown = {})
      : text_(tokenizer, params, prompt, std::move(shown)), stop_ids_(params.stop_ids) {}

  // Tokens behind a stop string are left out. Nothing once finished.
  Delta read(const Piece& piece);
  bool finished() const { return finished_; }
  // The text ended by a stop string, so that the engine still draws.
  bool stopped_by_text() const { return text_.stopped(); }

 private:
  bool is_end(generate::Finish finish, int32_t last) const;

  generate::CompletionText text_;
  std::vector<int32_t> stop_ids_;
  bool finished_ = false;
};

// One request's choices, taken from its channel as text. One thread.
class Completions : private base::Immovable {
 public:
  // `prompts`: each of as many choices, in their order. `shown`: special tokens that have a text.
  Completions(std::shared_ptr<Channel> channel, const text::Tokenizer& tokenizer,
              const generate::SamplingParams& params, std::span<const std::vector<int32_t>> prompts,
              const std::vector<int32_t>& shown = {});
  ~Completions();  // what is unfinished is cancelled

  // Gives what is new; waits for it, empty when the deadline passed first. Rethrows what the request failed with.
  std::vector<Delta> next(const base::Deadline& deadline);
  bool finished() const { return running_ == 0; }
  Channel& channel() { return *channel_; }

 private:
  std::shared_ptr<Channel> channel_;
  std::vector<ChoiceText> texts_;
  int64_t running_;
};

}  // namespace collimate::serve
