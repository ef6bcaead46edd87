#pragma once

#include <string>
#include <vector>

namespace collimate::text::jinja {

enum class TokenKind {
  kText,
  kBeginPrint,
  kEndPrint,
  kBeginBlock,
  kEndBlock,
  kName,
  kString,
  kInteger,
  kReal,
  kSign,
  kEnd
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // of a string what it stands for
  int line = 0;
};

// The tokens of a template, as Jinja2 has them with trim_blocks and lstrip_blocks: a block's line leaves nothing of
// itself, comments nothing at all, and "-" takes the whitespace beside it. InputError naming the line.
std::vector<Token> tokens_of(const std::string& source);

}  // namespace collimate::text::jinja
