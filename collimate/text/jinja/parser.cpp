#include "collimate/text/jinja/expression_parser.h"
#include "collimate/text/jinja/search.h"

namespace collimate::text::jinja {
namespace {

class Parser : private ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Node whole() {
    Node body = statements({});
    if (peek().kind != TokenKind::kEnd) refuse_here("the end of the template");
    return body;
  }

 private:
  // Reads up to a block that begins with one of `ends`, which is left there.
  Node statements(const std::vector<const char*>& ends) {
    const Deeper deeper(*this);
    Node body = make(Op::kBody);
    for (;;) {
      const TokenKind kind = peek().kind;
      if (kind == TokenKind::kText) {
        body.children.push_back(make(Op::kText));
        body.children.back().text = next().text;
      } else if (kind == TokenKind::kBeginPrint) {
        ++at_;
        body.children.push_back(make(Op::kPrint, "", {list_or_one()}));
        expect(TokenKind::kEndPrint, "'}}'");
      } else if (kind == TokenKind::kBeginBlock) {
        if (std::any_of(ends.begin(), ends.end(), [&](const char* end) { return is_word(end, 1); })) return body;
        ++at_;
        body.children.push_back(block());
      } else {
        if (kind != TokenKind::kEnd || !ends.empty()) refuse_here(ends.empty() ? "a statement" : ends.back());
        return body;
      }
    }
  }

  void end_of_block() { expect(TokenKind::kEndBlock, "'%}'"); }
  // Reads {% end %} behind a body.
  void finish(const char* end) {
    expect(TokenKind::kBeginBlock, end);
    expect_word(end);
    end_of_block();
  }
  // Reads a body with its end.
  Node body_until(const char* end) {
    end_of_block();
    Node body = statements({end});
    finish(end);
    return body;
  }

  Node block() {
    if (take_word("for")) return for_block();
    if (take_word("if")) return if_block();
    if (take_word("set")) return set_block();
    if (take_word("macro")) return macro_block();
    if (take_word("with")) return with_block();
    if (take_word("call")) return call_block();
    if (take_word("filter")) return filter_block();
    if (take_word("generation")) return make(Op::kGeneration, "", {body_until("endgeneration")});
    for (const auto& [word, op] : {std::pair{"break", Op::kBreak}, std::pair{"continue", Op::kContinue}}) {
      if (!take_word(word)) continue;
      Node node = make(op);
      end_of_block();
      return node;
    }
    refuse_here(
        "for, if, set, with, macro, call, filter, generation, break or "
        "continue");
  }

  Node for_block() {
    Node node = make(Op::kFor);
    node.names = target_names();
    expect_word("in");
    Node items = no_choice();
    if (is_sign(",")) items = rest_of_list(std::move(items));
    Node condition = take_word("if") ? expression() : Node{};
    if (take_word("recursive")) node.text = "recursive";
    end_of_block();
    Node body = statements({"else", "endfor"}), otherwise;
    if (is_word("else", 1)) {
      at_ += 2;
      end_of_block();
      otherwise = statements({"endfor"});
    }
    finish("endfor");
    node.children = {std::move(items), std::move(condition), std::move(body), std::move(otherwise)};
    return node;
  }

  std::vector<std::string> target_names() {
    const bool bracket = take_sign("(");
    std::vector<std::string> names = {expect_name()};
    while (take_sign(",")) names.push_back(expect_name());
    if (bracket) expect_sign(")");
    return names;
  }

  Node if_block() {
    Node node = make(Op::kIf);
    node.children.push_back(list_or_one());
    end_of_block();
    node.children.push_back(statements({"elif", "else", "endif"}));
    ++at_;  // the block's beginning
    if (take_word("elif")) {
      node.children.push_back(if_block());  // takes the endif
      return node;
    }
    if (take_word("else")) {
      end_of_block();
      node.children.push_back(statements({"endif"}));
      ++at_;
    } else {
      node.children.emplace_back();
    }
    expect_word("endif");
    end_of_block();
    return node;
  }

  Node set_block() {
    Node node = make(Op::kSet);
    node.names = target_names();
    if (take_sign(".")) node.text = expect_name();
    if (take_sign("=")) {
      node.children.push_back(list_or_one());
      end_of_block();
      return node;
    }
    node.op = Op::kSetBlock;
    Node filter;
    while (take_sign("|")) filter = filtered(std::move(filter));
    node.children.push_back(body_until("endset"));
    node.children.push_back(std::move(filter));
    return node;
  }

  Node with_block() {
    Node node = make(Op::kWith);
    std::vector<Node> values;
    while (peek().kind != TokenKind::kEndBlock) {
      if (!values.empty()) expect_sign(",");
      node.names.push_back(expect_name());
      expect_sign("=");
      values.push_back(expression());
    }
    node.children.push_back(body_until("endwith"));
    for (Node& value : values) node.children.push_back(std::move(value));
    return node;
  }

  // Reads (a, b=1): names and their defaults.
  void parameters(Node& node) {
    expect_sign("(");
    while (!take_sign(")")) {
      node.names.push_back(expect_name());
      if (take_sign("=")) node.named.emplace_back(node.names.back(), expression());
      if (!is_sign(")")) expect_sign(",");
    }
  }

  static void note_reads(Node& macro, const Node& body) {
    List found;
    for (const char* name : {"caller", "varargs", "kwargs"})
      if (reads(body, name)) found.emplace_back(name);
    macro.value = Value(std::move(found));
  }

  Node macro_block() {
    Node node = make(Op::kMacro);
    node.text = expect_name();
    parameters(node);
    node.children.push_back(body_until("endmacro"));
    note_reads(node, node.children[0]);
    return node;
  }

  Node call_block() {
    Node node = make(Op::kCallBlock);
    if (is_sign("(")) parameters(node);
    Node call = expression();
    if (call.op != Op::kCall) refuse_here("the call of a macro");
    Node body = body_until("endcall");
    node.children = {std::move(call), std::move(body)};
    note_reads(node, node.children[1]);
    return node;
  }

  Node filter_block() {
    Node node = make(Op::kFilterBlock);
    Node filter = filtered(Node{});
    while (take_sign("|")) filter = filtered(std::move(filter));
    node.children = {body_until("endfilter"), std::move(filter)};
    return node;
  }
};

}  // namespace

Node parse(const std::string& source) { return Parser(source).whole(); }

}  // namespace collimate::text::jinja
