#include "collimate/text/constraint/constraint.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/text/constraint/llguidance.h"
#include "collimate/text/json_numbers.h"

namespace collimate::text {
namespace {

constexpr const char* kNoToken = "no token of the vocabulary that goes on";

// Returns the engine's message in one line: without the parser's state, and of an expression's error only its last
// line.
std::string cause_of(std::string message) {
  if (message.starts_with("NoExtensionBias")) return kNoToken;
  message.resize(std::min(message.size(), message.find("\n<state>")));
  if (const size_t error = message.rfind("error: "); error != std::string::npos)
    message = message.substr(error, message.find('\n', error) - error).substr(std::string("error: ").size());
  std::replace(message.begin(), message.end(), '\n', ' ');
  return base::beginning_of(message, 300);
}

// A kind of rule in the words of the engine, and in those of an error.
struct KindWords {
  const char *engine, *expected;
};
KindWords words_of(TextRule::Kind kind) {
  switch (kind) {
    case TextRule::Kind::kRegex:
      return {"regex", "a regular expression that completions can follow (Rust's syntax)"};
    case TextRule::Kind::kJsonSchema:
      return {"json_schema", "a JSON schema that completions can follow"};
    case TextRule::Kind::kGrammar:
      break;
  }
  return {"lark", "calls that completions can be, with parameters of a JSON schema that can be followed"};
}

std::span<const uint32_t> as_engine_tokens(std::span<const int32_t> tokens) {
  return {reinterpret_cast<const uint32_t*>(tokens.data()), tokens.size()};
}

}  // namespace

std::string with_bounded_blanks(const std::string& schema, const std::string& name) {
  constexpr const char* kOptions = "x-guidance";
  const nlohmann::ordered_json blanks = {{"whitespace_pattern", R"((\r?\n){0,2}[ \t]{0,20})"}};
  const nlohmann::json parsed = base::parse_json(schema, name);
  const std::string member = fmt::format(R"("{}":{})", kOptions, blanks.dump());
  if (parsed == true) return "{" + member + "}";
  if (!parsed.is_object()) return schema;
  const auto options = parsed.find(kOptions);
  if (options == parsed.end())  // written into the text, so that its numbers stay as they are
    return "{" + member + (parsed.empty() ? "" : ",") + schema.substr(schema.find('{') + 1);
  const auto says = [&](const char* key) { return options->contains(key); };
  if (!options->is_object() || says("whitespace_pattern") || says("whitespace_flexible")) return schema;
  nlohmann::ordered_json whole = parse_exact_json(schema, name);
  whole[kOptions].update(blanks);
  return whole.dump();
}

// Holds the bytes of all tokens, as the engine keeps them.
class Constrainer::Vocabulary {
 public:
  struct FreeMatcher {
    void operator()(LlgMatcher* matcher) const { llguidance().free_matcher(matcher); }
  };
  using Matcher = std::unique_ptr<LlgMatcher, FreeMatcher>;

  Vocabulary(const Tokenizer& tokenizer, int64_t vocabulary, std::span<const int32_t> end_ids) {
    std::vector<uint32_t> lengths;
    std::string bytes;
    for (int32_t id = 0; id < vocabulary; ++id) {
      const bool shown = id < tokenizer.vocab_size() && !tokenizer.is_special(id);
      const std::string token = shown ? tokenizer.token_bytes(id) : "";
      lengths.push_back(static_cast<uint32_t>(token.size()));
      bytes += token;
    }
    std::vector<uint32_t> ends;
    for (const int32_t id : end_ids)
      if (id >= 0 && id < vocabulary) ends.push_back(static_cast<uint32_t>(id));
    COLLIMATE_CHECK(!ends.empty(), "no token of the vocabulary ends a text");
    LlgTokenizerInitV2 init{};
    init.struct_size = sizeof(init);
    init.vocab_size = static_cast<uint32_t>(lengths.size());
    init.tok_eos = ends[0];
    init.token_lens = lengths.data();
    init.token_bytes = reinterpret_cast<const uint8_t*>(bytes.data());
    init.use_approximate_greedy_tokenize_fn = true;  // only forced tokens need one, which nobody asks for
    init.tok_eos_extra = ends.data() + 1;
    init.tok_eos_extra_count = static_cast<uint32_t>(ends.size() - 1);
    std::array<char, 512> error{};
    tokenizer_ = llguidance().new_tokenizer_v2(&init, error.data(), error.size());
    COLLIMATE_CHECK(tokenizer_ != nullptr, "llguidance: {}", error.data());
  }
  ~Vocabulary() { llguidance().free_tokenizer(tokenizer_); }
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  Matcher matcher(const TextRule& rule) const {
    LlgConstraintInit init{};
    llguidance().constraint_init_set_defaults(&init, tokenizer_);
    init.log_buffer_level = init.log_stderr_level = 0;
    return Matcher(llguidance().new_matcher(&init, words_of(rule.kind).engine, rule.text.c_str()));
  }

 private:
  LlgTokenizer* tokenizer_ = nullptr;
};

class Constrainer::Followed final : public Constraint {
  using Matcher = Vocabulary::Matcher;

 public:
  Followed(std::shared_ptr<const Vocabulary> vocabulary, const TextRule& rule)
      : vocabulary_(std::move(vocabulary)), fresh_(vocabulary_->matcher(rule)) {
    restart();
    const size_t bytes = error_of(matcher_).empty() ? llguidance().matcher_get_mask_byte_size(matcher_.get()) : 0;
    mask_.resize(bytes / sizeof(uint32_t));
  }
  Followed(const Followed& other)
      : vocabulary_(other.vocabulary_),
        fresh_(llguidance().clone_matcher(other.fresh_.get())),
        mask_(other.mask_.size()) {
    restart();
  }
  Followed& operator=(const Followed&) = delete;

  std::span<const uint32_t> allowed_after(std::span<const int32_t> tokens) override {
    if (answered_ && std::ranges::equal(tokens, asked_)) return answer();
    answered_ = true;
    asked_.assign(tokens.begin(), tokens.end());
    problem_ = error_of(matcher_);
    any_ = problem_.empty() && follow(tokens) && compute();
    return answer();
  }
  const std::string& problem() const override { return problem_; }

  std::unique_ptr<Constraint> copy() const override {
    auto made = std::make_unique<Followed>(*this);  // at the beginning of the text
    made->matcher_ = Matcher(llguidance().clone_matcher(matcher_.get()));
    made->followed_ = followed_;
    return made;
  }

 private:
  static std::string error_of(const Matcher& matcher) {
    const char* error = llguidance().matcher_get_error(matcher.get());
    return error == nullptr ? "" : cause_of(error);
  }

  std::span<const uint32_t> answer() const { return any_ ? std::span<const uint32_t>(mask_) : std::span<uint32_t>(); }

  void restart() {
    matcher_ = Matcher(llguidance().clone_matcher(fresh_.get()));
    followed_.clear();
  }

  // Notes the error and puts another matcher in place, so that what is asked next, of other tokens, does not depend on
  // what was asked before.
  bool fail() {
    problem_ = error_of(matcher_);  // from which a matcher never recovers
    restart();
    return false;
  }

  bool follow(std::span<const int32_t> tokens) {
    const auto shared = static_cast<size_t>(std::ranges::mismatch(followed_, tokens).in1 - followed_.begin());
    if (followed_.size() > shared) {
      if (llguidance().matcher_rollback(matcher_.get(), followed_.size() - shared) != 0) return fail();
      followed_.resize(shared);
    }
    const std::span<const uint32_t> rest = as_engine_tokens(tokens.subspan(shared));
    if (rest.empty()) return true;
    const int32_t valid = llguidance().matcher_validate_tokens(matcher_.get(), rest.data(), rest.size());
    if (valid < 0) return fail();
    if (static_cast<size_t>(valid) < rest.size()) return false;
    if (llguidance().matcher_consume_tokens(matcher_.get(), rest.data(), rest.size()) != 0) return fail();
    followed_.assign(tokens.begin(), tokens.end());
    return true;
  }

  bool compute() {
    const size_t bytes = mask_.size() * sizeof(uint32_t);
    if (llguidance().matcher_compute_mask_into(matcher_.get(), mask_.data(), bytes) != 0) return fail();
    if (std::any_of(mask_.begin(), mask_.end(), [](uint32_t word) { return word != 0; })) return true;
    problem_ = kNoToken;
    return false;
  }

  std::shared_ptr<const Vocabulary> vocabulary_;  // the matchers use it
  Matcher fresh_;                                 // at the beginning of the text
  Matcher matcher_;
  std::vector<int32_t> followed_;  // the tokens that matcher_ has taken
  // The last question and the answer to it.
  bool answered_ = false, any_ = false;
  std::vector<int32_t> asked_;
  std::vector<uint32_t> mask_;
  std::string problem_;
};

Constrainer::Constrainer(const Tokenizer& tokenizer, int64_t vocabulary, std::span<const int32_t> end_ids)
    : vocabulary_(std::make_shared<Vocabulary>(tokenizer, vocabulary, end_ids)) {}

Constrainer::~Constrainer() = default;

std::unique_ptr<Constraint> Constrainer::make(const TextRule& rule, const std::string& name) {
  constexpr size_t kMostKept = 64;
  const auto refuse = [&](const std::string& cause) {
    throw base::InputError(base::expectation(name, words_of(rule.kind).expected, cause));
  };
  if (rule.text.find('\0') != std::string::npos) refuse("one with a zero byte");
  auto found = made_.find(rule);
  if (found == made_.end()) {
    TextRule bounded = rule;
    if (rule.kind == TextRule::Kind::kJsonSchema) bounded.text = with_bounded_blanks(rule.text, name);
    auto made = std::make_unique<Followed>(vocabulary_, bounded);
    if (made->allowed_after({}).empty()) refuse(made->problem());
    if (made_.size() >= kMostKept) made_.clear();
    found = made_.emplace(rule, std::move(made)).first;
  }
  return std::make_unique<Followed>(*found->second);
}

}  // namespace collimate::text
