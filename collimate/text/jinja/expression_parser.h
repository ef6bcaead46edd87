#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/text/jinja/lexer.h"
#include "collimate/text/jinja/syntax.h"

namespace collimate::text::jinja {

// Reads expressions from tokens, the loosest operators first. The parser of statements builds on it.
class ExpressionParser {
 public:
  explicit ExpressionParser(const std::string& source) : tokens_(tokens_of(source)) {}

 protected:
  // Counts how deep the parser stands, and refuses what is deeper than any template is.
  class Deeper {
   public:
    explicit Deeper(ExpressionParser& parser) : depth_(parser.depth_) {
      if (++depth_ > kMostDepth) parser.refuse_here(fmt::format("at most {} levels", kMostDepth));
    }
    ~Deeper() { --depth_; }

   private:
    int& depth_;
  };

  // ---- tokens
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  Token next() { return tokens_[std::min(at_++, tokens_.size() - 1)]; }
  bool is_sign(const char* sign, size_t ahead = 0) const {
    return peek(ahead).kind == TokenKind::kSign && peek(ahead).text == sign;
  }
  bool is_word(const char* word, size_t ahead = 0) const {
    return peek(ahead).kind == TokenKind::kName && peek(ahead).text == word;
  }
  bool take_sign(const char* sign) {
    const bool there = is_sign(sign);
    at_ += there ? 1 : 0;
    return there;
  }
  bool take_word(const char* word) {
    const bool there = is_word(word);
    at_ += there ? 1 : 0;
    return there;
  }
  void expect_sign(const char* sign) {
    if (!take_sign(sign)) refuse_here(fmt::format("'{}'", sign));
  }
  void expect_word(const char* word) {
    if (!take_word(word)) refuse_here(fmt::format("'{}'", word));
  }
  std::string expect_name() {
    if (peek().kind != TokenKind::kName) refuse_here("a name");
    return next().text;
  }
  void expect(TokenKind kind, const char* what) {
    if (peek().kind != kind) refuse_here(what);
    ++at_;
  }
  [[noreturn]] void refuse_here(const std::string& expected) const {
    const Token& token = peek();
    const std::string got = token.kind == TokenKind::kEnd ? "the end of the template"
                            : token.text.empty()          ? "the end of the tag"
                                                          : fmt::format("'{}'", base::beginning_of(token.text, 40));
    throw base::InputError(base::expectation(fmt::format("chat template line {}", token.line), expected, got));
  }
  Node make(Op op) const { return {op, peek().line}; }
  Node make(Op op, std::string text, std::vector<Node> children) const {
    Node node{op, peek().line, std::move(text)};
    for (const Node& child : children) node.levels = std::max(node.levels, child.levels + 1);
    if (node.levels > kMostChained) refuse_here(fmt::format("at most {} operators in a row", kMostChained));
    node.children = std::move(children);
    return node;
  }

  Node expression();
  // Parses an expression without "if … else …".
  Node no_choice();
  Node list_or_one();
  Node rest_of_list(Node first);
  // Reads `filter(…)` behind the sign |, applied to a value.
  Node filtered(Node of);

  size_t at_ = 0;

 private:
  Node conjunction();
  Node negation();
  Node comparison();
  Node binary(Node (ExpressionParser::*operand)(), const std::vector<const char*>& signs);
  Node sum();
  Node joined();
  Node product();
  Node power();
  Node unary(bool with_filters);
  Node primary();
  Node name();
  Node bracketed();
  Node list_until(const char* end);
  Node dictionary();
  Node postfix(Node node);
  Node subscript(Node of);
  Node call(Node node);
  Node filtered_and_tested(Node node);
  Node tested(Node of);

  static constexpr int kMostDepth = 100;    // of expressions and statements in each other
  static constexpr int kMostChained = 200;  // operators in a row, as in a ~ b ~ c

  std::vector<Token> tokens_;
  int depth_ = 0;
};

}  // namespace collimate::text::jinja
