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
  std::string text;  // of a string, the text that it stands for
  int line = 0;
};

// Returns the tokens of a template, as Jinja2 has them with trim_blocks and lstrip_blocks: a block alone on its line
// leaves nothing of the line, comments leave nothing at all, and "-" takes the white space beside it. Throws
// InputError, which names the line.
std::vector<Token> tokens_of(const std::string& source);

}  // namespace collimate::text::jinja
