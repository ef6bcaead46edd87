#include "collimate/serve/completion.h"

#include <utility>

namespace collimate::serve {

CompletionText::CompletionText(const text::Tokenizer& tokenizer, const Stops& stops)
    : decoder_(tokenizer), stop_(stops.strings), min_tokens_(stops.min_tokens) {}

Delta CompletionText::read(const Piece& piece) {
  Delta delta{.choice = piece.choice};
  if (finished_) return delta;
  const bool ended_by_token = piece.finish == generate::Finish::kEos || piece.finish == generate::Finish::kStop;
  for (size_t i = 0; i < piece.tokens.size() && !stop_.matched(); ++i) {
    delta.tokens.push_back(piece.tokens[i]);
    delta.log_probs.push_back(piece.log_probs[i]);
    ++tokens_;
    if (ended_by_token && i + 1 == piece.tokens.size()) break;
    delta.text += cut(decoder_.push(piece.tokens[i]));
  }
  if (!stop_.matched() && piece.finish == generate::Finish::kRunning) return delta;
  finished_ = true;
  delta.finish_reason = piece.finish == generate::Finish::kLength ? "length" : "stop";
  if (!stop_.matched()) {
    delta.text += cut(decoder_.finish());
    if (!stop_.matched()) delta.text += stop_.finish();
  }
  if (stop_.matched()) delta.finish_reason = "stop";
  return delta;
}

Completions::Completions(std::shared_ptr<Channel> channel, const text::Tokenizer& tokenizer, const Stops& stops)
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
