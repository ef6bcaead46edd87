#include "collimate/text/jinja_outline.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <span>
#include <string_view>

namespace collimate::text {
namespace {

constexpr std::string_view kBlank = " \t\n\r\f\v";
constexpr char kQuoteMark = '\x02';  // around the literals of an entry's code

// {{ … }}, {% … %} or {# … #}; `kind` is the character after the brace, `before` and `after` the signs inside of it.
struct JinjaTag {
  char kind = '{';
  char before = ' ', after = ' ';
  std::string_view code;
  size_t next = 0;  // of the template, after the tag and the white space that it takes away
};

// Where `closing` stands outside of quotes.
size_t closing_at(std::string_view jinja, size_t at, std::string_view closing, bool quotes) {
  char quote = 0;
  for (; at < jinja.size(); ++at) {
    const char c = jinja[at];
    if (quote != 0) {
      if (c == '\\') ++at;
      if (c == quote) quote = 0;
    } else if (jinja.substr(at).starts_with(closing)) {
      return at;
    } else if (quotes && (c == '\'' || c == '"')) {
      quote = c;
    }
  }
  return std::string_view::npos;
}

size_t next_tag(std::string_view jinja, size_t at) {
  for (; at + 1 < jinja.size(); ++at) {
    const char kind = jinja[at + 1];
    if (jinja[at] == '{' && (kind == '{' || kind == '%' || kind == '#')) return at;
  }
  return std::string_view::npos;
}

std::optional<JinjaTag> read_tag(std::string_view jinja, size_t at) {
  JinjaTag tag;
  tag.kind = jinja[at + 1];
  const std::string closing = {tag.kind == '{' ? '}' : tag.kind, '}'};
  size_t begin = at + 2;
  if (begin < jinja.size() && (jinja[begin] == '-' || jinja[begin] == '+')) tag.before = jinja[begin++];
  size_t end = closing_at(jinja, begin, closing, tag.kind != '#');
  if (end == std::string_view::npos) return std::nullopt;
  tag.next = end + 2;
  if (end > begin && (jinja[end - 1] == '-' || jinja[end - 1] == '+')) tag.after = jinja[--end];
  tag.code = jinja.substr(begin, end - begin);
  if (tag.after == '-') {
    tag.next = std::min(jinja.find_first_not_of(kBlank, tag.next), jinja.size());
  } else if (tag.kind != '{' && tag.after != '+' && jinja.substr(tag.next).starts_with('\n')) {
    ++tag.next;  // trim_blocks
  }
  return tag;
}

// The text before a tag, without the white space that the tag takes away.
std::string_view text_before(std::string_view text, const JinjaTag& tag, bool begins_line) {
  if (tag.before == '-') return text.substr(0, text.find_last_not_of(kBlank) + 1);
  if (tag.before == '+' || tag.kind == '{') return text;
  const size_t line = text.rfind('\n') + 1;  // lstrip_blocks: a tag that only blanks stand before on its line
  const bool alone = (line > 0 || begins_line) && text.find_first_not_of(kBlank, line) == std::string_view::npos;
  return alone ? text.substr(0, line) : text;
}

struct JinjaToken {
  enum class Kind { kWord, kLiteral, kSign };
  Kind kind;
  std::string text;

  bool is(std::string_view sign) const { return kind == Kind::kSign && text == sign; }
};
using JinjaTokens = std::span<const JinjaToken>;

bool in_word(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

// The literal whose quote stands at `at`, which moves behind it.
std::optional<std::string> read_literal(std::string_view code, size_t& at) {
  static constexpr std::string_view kEscapes = "nrt\\'\"", kMeanings = "\n\r\t\\'\"";
  const char quote = code[at];
  std::string out;
  for (++at; at < code.size() && code[at] != quote; ++at) {
    if (code[at] != '\\') {
      out += code[at];
      continue;
    }
    const size_t escape = ++at < code.size() ? kEscapes.find(code[at]) : std::string_view::npos;
    if (escape == std::string_view::npos) return std::nullopt;
    out += kMeanings[escape];
  }
  if (at++ >= code.size()) return std::nullopt;
  return out;
}

std::optional<std::vector<JinjaToken>> read_tokens(std::string_view code) {
  std::vector<JinjaToken> tokens;
  for (size_t at = 0; at < code.size();) {
    const char c = code[at];
    if (kBlank.find(c) != std::string_view::npos) {
      ++at;
    } else if (c == '\'' || c == '"') {
      std::optional<std::string> literal = read_literal(code, at);
      if (!literal) return std::nullopt;
      tokens.push_back({JinjaToken::Kind::kLiteral, std::move(*literal)});
    } else if (in_word(c)) {
      const size_t begin = at;
      while (at < code.size() && in_word(code[at])) ++at;
      tokens.push_back({JinjaToken::Kind::kWord, std::string(code.substr(begin, at - begin))});
    } else {
      tokens.push_back({JinjaToken::Kind::kSign, std::string(1, c)});
      ++at;
    }
  }
  return tokens;
}

// Do the tokens from `at` say ['key'] behind a value?
bool is_key(JinjaTokens tokens, size_t at) {
  if (at == 0 || at + 2 >= tokens.size() || !tokens[at].is("[") || !tokens[at + 2].is("]")) return false;
  const JinjaToken& owner = tokens[at - 1];
  return tokens[at + 1].kind == JinjaToken::Kind::kLiteral && (owner.kind == JinjaToken::Kind::kWord || owner.is("]"));
}

class OutlineWriter {
 public:
  void text(std::string_view text) { output_ += text; }

  // The parts of an expression, joined by + or ~: literals as they are, others marked.
  void expression(JinjaTokens tokens) {
    int depth = 0;
    size_t begin = 0;
    for (size_t i = 0; i <= tokens.size(); ++i) {
      if (i < tokens.size()) {
        depth += tokens[i].is("(") || tokens[i].is("[") || tokens[i].is("{") ? 1 : 0;
        depth -= tokens[i].is(")") || tokens[i].is("]") || tokens[i].is("}") ? 1 : 0;
        if (depth != 0 || !(tokens[i].is("+") || tokens[i].is("~"))) continue;
      }
      part(tokens.subspan(begin, i - begin));
      begin = i + 1;
    }
  }

  void statement(JinjaTokens tokens) {
    finish_output();
    const bool over_messages = tokens.size() == 4 && tokens[0].text == "for" && tokens[2].text == "in" &&
                               tokens[3].text == "messages" && tokens[1].kind == JinjaToken::Kind::kWord;
    if (over_messages) variable_ = tokens[1].text;
    outline_.push_back(code(tokens).insert(0, 1, '%'));
  }

  JinjaOutline finish() {
    finish_output();
    return std::move(outline_);
  }

 private:
  void finish_output() {
    if (!output_.empty()) outline_.push_back("=" + output_);
    output_.clear();
  }

  void part(JinjaTokens tokens) {
    const bool literal = tokens.size() == 1 && tokens[0].kind == JinjaToken::Kind::kLiteral;
    output_ += literal ? tokens[0].text : kExpressionMark + code(tokens) + kExpressionMark;
  }

  std::string code(JinjaTokens tokens) const {
    std::string out;
    bool after_word = false;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const JinjaToken& token = tokens[i];
      const bool word = token.kind == JinjaToken::Kind::kWord, key = is_key(tokens, i);
      if (word && after_word) out += ' ';
      if (key) {
        out += "." + tokens[i + 1].text;
        i += 2;
      } else if (word) {
        out += token.text == variable_ ? "message" : token.text;
      } else {
        out += token.kind == JinjaToken::Kind::kLiteral ? kQuoteMark + token.text + kQuoteMark : token.text;
      }
      after_word = word || key;
    }
    return out;
  }

  std::string variable_ = "message";
  std::string output_;
  JinjaOutline outline_;
};

// Line ends as \n, and no \n at the end: what Jinja does first.
void normalize_lines(std::string& jinja) {
  for (size_t at = jinja.find('\r'); at != std::string::npos; at = jinja.find('\r', at + 1)) {
    jinja[at] = '\n';
    if (at + 1 < jinja.size() && jinja[at + 1] == '\n') jinja.erase(at + 1, 1);
  }
  if (jinja.ends_with('\n')) jinja.pop_back();
}

}  // namespace

std::optional<JinjaOutline> jinja_outline(std::string jinja) {
  normalize_lines(jinja);
  const std::string_view all = jinja;
  OutlineWriter out;
  size_t at = 0;
  for (size_t open = next_tag(all, 0); open != std::string_view::npos; open = next_tag(all, at)) {
    const std::optional<JinjaTag> tag = read_tag(all, open);
    if (!tag) return std::nullopt;
    out.text(text_before(all.substr(at, open - at), *tag, at == 0 || all[at - 1] == '\n'));
    at = tag->next;
    if (tag->kind == '#') continue;
    const auto tokens = read_tokens(tag->code);
    if (!tokens || tokens->empty() || tokens->front().text == "raw") return std::nullopt;
    tag->kind == '%' ? out.statement(*tokens) : out.expression(*tokens);
  }
  out.text(all.substr(at));
  return out.finish();
}

}  // namespace collimate::text
