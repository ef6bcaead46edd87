#include "collimate/serve/completion.h"

#include <utility>

#include "collimate/text/utf8.h"

namespace collimate::serve {

CompletionText::CompletionText(const text::Tokenizer& tokenizer, std::vector<std::string> stops)
    : decoder_(tokenizer), stop_(std::move(stops)) {}

Delta CompletionText::read(const Piece& piece) {
  Delta delta{.choice = piece.choice};
  if (finished_) return delta;
  const bool ended_by_token = piece.finish == generate::Finish::kEos || piece.finish == generate::Finish::kStop;
  for (size_t i = 0; i < piece.tokens.size() && !stop_.found(); ++i) {
    delta.tokens.push_back(piece.tokens[i]);
    delta.log_probs.push_back(piece.log_probs[i]);
    if (ended_by_token && i + 1 == piece.tokens.size()) break;
    delta.text += stop_.push(text::valid_utf8(decoder_.push(piece.tokens[i])));
  }
  if (!stop_.found() && piece.finish == generate::Finish::kRunning) return delta;
  finished_ = true;
  delta.finish_reason = piece.finish == generate::Finish::kLength ? "length" : "stop";
  if (!stop_.found()) {
    delta.text += stop_.push(text::valid_utf8(decoder_.finish()));
    if (!stop_.found()) delta.text += stop_.finish();
  }
  if (stop_.found()) delta.finish_reason = "stop";
  return delta;
}

Completions::Completions(std::shared_ptr<Channel> channel, const text::Tokenizer& tokenizer,
                         const std::vector<std::string>& stops)
    : channel_(std::move(channel)), running_(channel_->choices()) {
  for (int64_t choice = 0; choice < running_; ++choice) texts_.emplace_back(tokenizer, stops);
}

Completions::~Completions() { channel_->drop_all(); }

std::vector<Delta> Completions::next(const base::Deadline& deadline) {
  std::vector<Delta> deltas;
  for (const Piece& piece : channel_->take(deadline)) {
    CompletionText& text = texts_[static_cast<size_t>(piece.choice)];
    if (text.finished()) continue;
    deltas.push_back(text.read(piece));
    if (!text.finished()) continue;
    --running_;
    if (text.stopped_by_text()) channel_->drop(piece.choice);
  }
  return deltas;
}

}  // namespace collimate::serve
