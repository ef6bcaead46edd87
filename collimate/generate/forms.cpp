#include "collimate/generate/forms.h"

#include <algorithm>
#include <utility>

#include "collimate/base/error.h"

namespace collimate::generate {

Forms::Forms(const text::Tokenizer* tokenizer, int64_t vocabulary, std::vector<int32_t> eos_ids)
    : tokenizer_(tokenizer), vocabulary_(vocabulary), eos_ids_(std::move(eos_ids)) {}

std::shared_ptr<text::Constraint> Forms::make(const SamplingParams& params, const std::string& where) {
  using Kind = text::TextRule::Kind;
  std::string name;
  text::TextRule rule;
  for (const auto& [kind, text, called] : {std::tuple(Kind::kRegex, &params.regex, "regex"),
                                           {Kind::kJsonSchema, &params.json_schema, "json_schema"},
                                           {Kind::kGrammar, &params.grammar, "tool_choice"}}) {
    if (text->empty()) continue;
    if (!name.empty())
      throw base::InputError(base::expectation(where, fmt::format("one of {} and {}", name, called), "both"));
    name = called;
    rule = {kind, *text};
  }
  if (name.empty()) return nullptr;
  check(params, where, name);
  if (!constrainer_) constrainer_ = std::make_unique<text::Constrainer>(*tokenizer_, vocabulary_, eos_ids_);
  return constrainer_->make(rule, where + ", " + name);
}

void Forms::check(const SamplingParams& params, const std::string& where, const std::string& given) const {
  const auto require = [&](bool good, const std::string& expected, const std::string& got, const char* remedy = "") {
    if (!good) throw base::InputError(base::expectation(where, expected, got, remedy));
  };
  require(tokenizer_ != nullptr, "no " + given + ", as the service has no tokenizer", "one", "a service with one");
  require(std::ranges::any_of(eos_ids_, [&](int32_t id) { return id >= 0 && id < vocabulary_; }),
          "an end-of-sequence token beside " + given, "a model that has none");
  require(!params.ignore_eos, "ignore_eos: false beside " + given, "true",
          "leaving it out: the text says where it ends");
  require(params.min_tokens == 0, "min_tokens: 0 beside " + given, fmt::to_string(params.min_tokens),
          "what is as long as it has to be");
}

}  // namespace collimate::generate
