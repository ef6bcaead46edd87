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
    : tokenizer_(tokenizer), skip_special_(skip_special) {}

std::string StreamDecoder::push(int32_t id) {
  if (skip_special_ && tokenizer_.is_special(id)) return {};
  const std::string bytes = tokenizer_.token_bytes(id);
  if (bytes.empty()) return {};
  if (at_start_) {  // where a dummy prefix space is dropped
    const int32_t ids[] = {id};
    pending_ += tokenizer_.decode(ids, false);
    at_start_ = false;
  } else {
    pending_ += bytes;
  }
  return take_certain(pending_);
}

std::string StreamDecoder::finish() {
  at_start_ = true;
  return std::exchange(pending_, {});
}

}  // namespace collimate::text
