#include "collimate/text/jinja/expression_parser.h"

namespace collimate::text::jinja {

Node ExpressionParser::list_or_one() {
  Node first = expression();
  return is_sign(",") ? rest_of_list(std::move(first)) : std::move(first);
}
Node ExpressionParser::rest_of_list(Node first) {
  std::vector<Node> items;
  items.push_back(std::move(first));
  while (take_sign(",")) {
    if (peek().kind == TokenKind::kEndBlock || peek().kind == TokenKind::kEndPrint || is_sign(")")) break;
    items.push_back(expression());
  }
  return make(Op::kList, "tuple", std::move(items));
}

Node ExpressionParser::expression() {
  const Deeper deeper(*this);
  Node node = no_choice();
  while (take_word("if")) {
    Node condition = no_choice();
    Node otherwise = take_word("else") ? expression() : Node{};
    node = make(Op::kChoice, "", {std::move(condition), std::move(node), std::move(otherwise)});
  }
  return node;
}

Node ExpressionParser::no_choice() {
  Node node = conjunction();
  while (take_word("or")) node = make(Op::kOr, "", {std::move(node), conjunction()});
  return node;
}
Node ExpressionParser::conjunction() {
  Node node = negation();
  while (take_word("and")) node = make(Op::kAnd, "", {std::move(node), negation()});
  return node;
}
Node ExpressionParser::negation() {
  const Deeper deeper(*this);
  return take_word("not") ? make(Op::kNot, "", {negation()}) : comparison();
}

Node ExpressionParser::comparison() {
  Node node = make(Op::kCompare);
  node.children.push_back(sum());
  for (;;) {
    if (is_word("not") && is_word("in", 1)) {
      at_ += 2;
      node.names.emplace_back("not in");
    } else if (take_word("in")) {
      node.names.emplace_back("in");
    } else if (is_sign("==") || is_sign("!=") || is_sign("<") || is_sign(">") || is_sign("<=") || is_sign(">=")) {
      node.names.push_back(next().text);
    } else {
      break;
    }
    node.children.push_back(sum());
  }
  if (node.names.empty()) {
    Node only = std::move(node.children.front());
    return only;
  }
  return node;
}

Node ExpressionParser::binary(Node (ExpressionParser::*operand)(), const std::vector<const char*>& signs) {
  Node node = (this->*operand)();
  for (;;) {
    const auto sign = std::find_if(signs.begin(), signs.end(), [&](const char* each) { return is_sign(each); });
    if (sign == signs.end()) return node;
    ++at_;
    node = make(Op::kBinary, *sign, {std::move(node), (this->*operand)()});
  }
}
Node ExpressionParser::sum() { return binary(&ExpressionParser::joined, {"+", "-"}); }
Node ExpressionParser::joined() { return binary(&ExpressionParser::product, {"~"}); }
Node ExpressionParser::product() { return binary(&ExpressionParser::power, {"*", "/", "//", "%"}); }
Node ExpressionParser::power() {
  Node node = unary(true);
  while (take_sign("**")) node = make(Op::kBinary, "**", {std::move(node), unary(true)});
  return node;
}

Node ExpressionParser::unary(bool with_filters) {
  const Deeper deeper(*this);
  Node node;
  if (take_sign("-")) {
    node = make(Op::kNegative, "", {unary(false)});
  } else if (take_sign("+")) {
    node = unary(false);
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filters ? filtered_and_tested(std::move(node)) : std::move(node);
}

Node ExpressionParser::primary() {
  Node node = make(Op::kValue);
  switch (peek().kind) {
    case TokenKind::kString: {
      std::string text;
      while (peek().kind == TokenKind::kString) text += next().text;
      node.value = text;
      return node;
    }
    case TokenKind::kInteger:
      node.value = int64_t{std::stoll(next().text)};
      return node;
    case TokenKind::kReal:
      node.value = std::strtod(next().text.c_str(), nullptr);
      return node;
    case TokenKind::kName:
      return name();
    default:
      break;
  }
  if (take_sign("(")) return bracketed();
  if (take_sign("[")) return list_until("]");
  if (take_sign("{")) return dictionary();
  refuse_here("an expression");
}

Node ExpressionParser::name() {
  Node node = make(Op::kValue);
  const std::string word = next().text;
  if (word == "true" || word == "True" || word == "false" || word == "False") {
    node.value = word == "true" || word == "True";
  } else if (word == "none" || word == "None") {
    node.value = None{};
  } else {
    node.op = Op::kName;
    node.text = word;
  }
  return node;
}

Node ExpressionParser::bracketed() {
  if (take_sign(")")) return make(Op::kList, "tuple", {});
  Node node = list_or_one();
  expect_sign(")");
  return node;
}
Node ExpressionParser::list_until(const char* end) {
  Node node = make(Op::kList);
  while (!take_sign(end)) {
    node.children.push_back(expression());
    if (!is_sign(end)) expect_sign(",");
  }
  return node;
}
Node ExpressionParser::dictionary() {
  Node node = make(Op::kDict);
  while (!take_sign("}")) {
    node.children.push_back(expression());
    expect_sign(":");
    node.children.push_back(expression());
    if (!is_sign("}")) expect_sign(",");
  }
  return node;
}

Node ExpressionParser::postfix(Node node) {
  for (;;) {
    if (take_sign(".")) {
      const TokenKind kind = peek().kind;
      if (kind == TokenKind::kInteger) {
        Node key{Op::kValue, peek().line};
        key.value = int64_t{std::stoll(next().text)};
        node = make(Op::kItem, "", {std::move(node), std::move(key)});
      } else {
        std::string attribute = expect_name();
        node = make(Op::kAttribute, std::move(attribute), {std::move(node)});
      }
    } else if (take_sign("[")) {
      node = subscript(std::move(node));
    } else if (is_sign("(")) {
      node = call(make(Op::kCall, "", {std::move(node)}));
    } else {
      return node;
    }
  }
}

Node ExpressionParser::subscript(Node of) {
  std::vector<Node> parts(1);
  size_t given = 0;  // colons
  while (!is_sign("]")) {
    if (take_sign(":")) {
      ++given;
      parts.emplace_back();
    } else {
      if (parts.back().op != Op::kNothing) refuse_here("']'");
      parts.back() = expression();
    }
  }
  expect_sign("]");
  if (given > 2 || (given == 0 && parts[0].op == Op::kNothing)) refuse_here("an index or a slice");
  Node node = make(given == 0 ? Op::kItem : Op::kSlice, "", {std::move(of)});
  if (given > 0) parts.resize(3);
  for (Node& part : parts) node.children.push_back(std::move(part));
  return node;
}

// Reads the arguments (a, b, c=d) of a call, behind the children that `node` has.
Node ExpressionParser::call(Node node) {
  expect_sign("(");
  while (!take_sign(")")) {
    if (peek().kind == TokenKind::kName && is_sign("=", 1)) {
      std::string key = next().text;
      ++at_;
      node.named.emplace_back(std::move(key), expression());
    } else {
      const bool members = take_sign("**"), items = !members && take_sign("*");
      Node given = expression();
      if (members || items) given = make(Op::kEach, members ? "members" : "", {std::move(given)});
      node.children.push_back(std::move(given));
    }
    if (!is_sign(")")) expect_sign(",");
  }
  return node;
}

Node ExpressionParser::filtered(Node of) {
  std::string filter = expect_name();
  while (take_sign(".")) filter.append(".").append(expect_name());
  Node node = make(Op::kFilter, std::move(filter), {});
  node.children.push_back(std::move(of));
  return is_sign("(") ? call(std::move(node)) : std::move(node);
}

Node ExpressionParser::filtered_and_tested(Node node) {
  for (;;) {
    if (take_sign("|")) {
      node = filtered(std::move(node));
    } else if (take_word("is")) {
      const bool negated = take_word("not");
      node = tested(std::move(node));
      if (negated) node = make(Op::kNot, "", {std::move(node)});
    } else if (is_sign("(")) {
      node = call(make(Op::kCall, "", {std::move(node)}));
    } else {
      return node;
    }
  }
}

// A test may take one argument without brackets.
Node ExpressionParser::tested(Node of) {
  Node node = make(Op::kTest, expect_name(), {});
  node.children.push_back(std::move(of));
  if (is_sign("(")) return call(std::move(node));
  if (is_word("is")) refuse_here("one test, or brackets around the first");
  const TokenKind kind = peek().kind;
  const bool follows = kind == TokenKind::kString || kind == TokenKind::kInteger || kind == TokenKind::kReal ||
                       is_sign("[") || is_sign("{") ||
                       (kind == TokenKind::kName && !is_word("else") && !is_word("or") && !is_word("and") &&
                        !is_word("is") && !is_word("if") && !is_word("in") && !is_word("not"));
  if (follows) node.children.push_back(postfix(primary()));
  return node;
}

}  // namespace collimate::text::jinja
