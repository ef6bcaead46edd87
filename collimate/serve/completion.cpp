#include "collimate/serve/completion.h"

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/text/utf8.h"

namespace collimate::serve {

bool ChoiceText::is_end(generate::Finish finish, int32_t last) const {
  if (finish == generate::Finish::kStop) return std::find(stop_ids_.begin(), stop_ids_.end(), last) != stop_ids_.end();
  return finish == generate::Finish::kEos;
}

Delta ChoiceText::read(const Piece& piece) {
  Delta delta{.choice = piece.choice};
  if (finished_) return delta;
  for (size_t i = 0; i < piece.tokens.size() && !text_.stopped(); ++i) {
    delta.tokens.push_back(piece.tokens[i]);
    delta.log_probs.push_back(piece.log_probs[i]);
    const auto top = generate::top_of(piece.top_log_probs, piece.tokens.size(), i);
    delta.top_log_probs.insert(delta.top_log_probs.end(), top.begin(), top.end());
    if (i + 1 == piece.tokens.size() && is_end(piece.finish, piece.tokens[i])) break;
    delta.text += text::valid_utf8(text_.push(piece.tokens[i]));
  }
  if (!text_.stopped() && piece.finish == generate::Finish::kRunning) return delta;
  finished_ = true;
  delta.text += text::valid_utf8(text_.finish());
  delta.finish_reason = text_.stopped() ? "stop" : generate::finish_reason(piece.finish);
  return delta;
}

Completions::Completions(std::shared_ptr<Channel> channel, const text::Tokenizer& tokenizer,
                         const generate::SamplingParams& params, std::span<const std::vector<int32_t>> prompts,
                         const std::vector<int32_t>& shown)
    : channel_(std::move(channel)), running_(channel_->choices()) {
  const size_t each = static_cast<size_t>(running_) / prompts.size();
  for (const std::vector<int32_t>& prompt : prompts) {
    for (size_t choice = 0; choice < each; ++choice) texts_.emplace_back(tokenizer, params, prompt, shown);
  }
}

Completions::~Completions() { channel_->drop_all(); }

std::vector<Delta> Completions::next(const base::Deadline& deadline) {
  std::vector<Delta> deltas;
  for (const Piece& piece : channel_->take(deadline)) {
    ChoiceText& text = base::at(texts_, piece.choice);
    if (text.finished()) continue;
    deltas.push_back(text.read(piece));
    if (!text.finished()) continue;
    --running_;
    if (text.stopped_by_text()) channel_->drop(piece.choice);
  }
  return deltas;
}

}  // namespace collimate::serve
