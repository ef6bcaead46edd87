#include "collimate/cli/open_draft.h"

#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/host/hub_cache.h"
#include "collimate/text/tokenizer.h"

namespace collimate::cli {
namespace {

using base::expectation;
using base::InputError;

// Whether a draft is asked for.
bool wanted(const generate::DraftOptions& options) {
  const bool draft = options.kind == std::string("draft"), named = !options.model->empty();
  if (draft && !named)
    throw InputError(expectation("draft_model", "the directory of a smaller model beside speculation draft", "none",
                                 "speculation ngram, which needs no model"));
  if (named && !draft)
    throw InputError(expectation("speculation", "draft beside draft_model", options.kind.get(),
                                 "speculation draft, or leaving draft_model out"));
  return draft;
}

std::string token_text(const text::Tokenizer& tokenizer, int32_t id) {
  return id < tokenizer.vocab_size() ? '"' + tokenizer.token_bytes(id) + '"' : "no token";
}

// Guesses are ids, which have to mean the same to both.
void require_equal_tokens(const text::Tokenizer& model, const text::Tokenizer& draft) {
  const int32_t most = std::max(model.vocab_size(), draft.vocab_size());
  for (int32_t id = 0; id < most; ++id) {
    const std::string expected = token_text(model, id), got = token_text(draft, id);
    if (expected == got) continue;
    throw InputError(expectation(fmt::format("draft_model, token {}", id), fmt::format("{} as in the model", expected),
                                 got, "a smaller model of the same family"));
  }
}

}  // namespace

std::unique_ptr<model::Model> open_draft(const generate::DraftOptions& options, OpenModel& open) {
  if (!wanted(options)) return nullptr;
  const std::string directory = host::model_directory(options.model);
  require_equal_tokens(*open.tokenizer, *text::load_tokenizer(directory));
  const model::WeightsOptions weights{.compute = open.model.weights().options().compute, .mapped = true};
  return std::make_unique<model::Model>(model::load_huggingface(directory, "lm", weights, open.exec), open.exec);
}

}  // namespace collimate::cli
