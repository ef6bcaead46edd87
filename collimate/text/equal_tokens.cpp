#include "collimate/text/equal_tokens.h"

#include <algorithm>
#include <string>

#include "collimate/base/error.h"

namespace collimate::text {
namespace {

std::string token_text(const Tokenizer& tokenizer, int32_t id) {
  return id < tokenizer.vocab_size() ? '"' + tokenizer.token_bytes(id) + '"' : "no token";
}

}  // namespace

void require_equal_tokens(const Tokenizer& model, const Tokenizer& other, const std::string& other_name) {
  const int32_t most = std::max(model.vocab_size(), other.vocab_size());
  for (int32_t id = 0; id < most; ++id) {
    const std::string expected = token_text(model, id), got = token_text(other, id);
    if (expected == got) continue;
    throw base::InputError(base::expectation(fmt::format("{}, token {}", other_name, id),
                                             fmt::format("{} as in the model", expected), got,
                                             "that of a model of the same family"));
  }
}

}  // namespace collimate::text
