#include <algorithm>
#include <utility>

#include "collimate/text/tokenizer.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

// Takes from `pending` all but an unfinished character at its end.
std::string take_certain(std::string& pending) {
  size_t certain = pending.size();
  for (size_t tail = 1; tail <= 3 && tail <= pending.size(); ++tail) {
    if (utf8_unfinished(std::string_view(pending).substr(pending.size() - tail))) {
      certain = pending.size() - tail;
    }
  }
  std::string out = pending.substr(0, certain);
  pending.erase(0, certain);
  return out;
}

}  // namespace

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : tokenizer_(tokenizer), skip_special_(skip_special), ends_(tokenizer.text_ends()) {
  restart();
}

void StreamDecoder::restart() {
  at_start_ = true;
  start_left_ = ends_.start;
  held_ = 0;
  between_.clear();
  at_end_.clear();
}

std::string StreamDecoder::whole(std::span<const int32_t> ids) {
  for (const int32_t id : ids) join(id);
  return finish();
}

void StreamDecoder::follow(std::span<const int32_t> ids) {
  restart();
  for (const int32_t id : ids) join(id);
  pending_.clear();
}

std::string StreamDecoder::push(int32_t id) {
  join(id);
  return take_certain(pending_);
}

// Appends the text of one token. An id without a text, as models have to pad their embedding, is no token.
void StreamDecoder::join(int32_t id) {
  if ((skip_special_ && tokenizer_.is_special(id)) || tokenizer_.token_bytes(id).empty()) return;
  append(std::exchange(between_, {}));
  const TokenPlace place{.first = std::exchange(at_start_, false)};
  std::string text = tokenizer_.token_bytes(id, place);
  if (ends_.last_differs) {
    const std::string last = tokenizer_.token_bytes(id, {.first = place.first, .last = true});
    const auto [same, end] = std::mismatch(text.begin(), text.end(), last.begin(), last.end());
    between_.assign(same, text.end());
    at_end_.assign(end, last.end());
    text.erase(same, text.end());
  }
  append(text);
}

void StreamDecoder::append(std::string_view text) {
  const std::string& stripped = ends_.stripped;
  while (start_left_ > 0 && text.starts_with(stripped)) {
    text.remove_prefix(stripped.size());
    --start_left_;
  }
  if (text.empty()) return;
  start_left_ = 0;
  size_t end = text.size();
  int held = 0;
  while (held < ends_.stop && text.substr(0, end).ends_with(stripped)) {
    end -= stripped.size();
    ++held;
  }
  const bool all = end == 0;  // the run at the end goes on
  const int given = all ? std::max(0, held_ + held - ends_.stop) : held_;
  for (int i = 0; i < given; ++i) pending_ += stripped;
  pending_ += text.substr(0, end);
  held_ = all ? held_ + held - given : held;
}

std::string StreamDecoder::finish() {
  append(at_end_);
  restart();
  return std::exchange(pending_, {});
}

}  // namespace collimate::text
