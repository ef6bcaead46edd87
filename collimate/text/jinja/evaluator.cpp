#include "collimate/text/jinja/evaluator.h"

#include <fmt/format.h>

#include <algorithm>

#include "collimate/base/error.h"

namespace collimate::text::jinja {
namespace {

// A LineError names the line of what goes wrong, which the innermost statement adds once.
class LineError : public base::InputError {
 public:
  using base::InputError::InputError;
};

// Runs something, and gives its errors the line of the node.
template <class Run>
auto at_line(const Node& node, const Run& run) {
  try {
    return run();
  } catch (const LineError&) {
    throw;
  } catch (const base::InputError& error) {
    std::string what = error.what();
    const std::string begin = "[chat template]";
    if (what.starts_with(begin)) what = fmt::format("[chat template line {}]{}", node.line, what.substr(begin.size()));
    throw LineError(what);
  }
}

class Restore {
 public:
  Restore(std::string*& place, std::string* to) : place_(place), to_(to) {}
  ~Restore() { place_ = to_; }

 private:
  std::string*& place_;
  std::string* to_;
};

}  // namespace

MarkedText Evaluator::run(const Node& body) {
  out_ = &whole_.text;
  statement(body, root_);
  return std::move(whole_);
}

Evaluator::Flow Evaluator::statement(const Node& node, Scope& scope) {
  return at_line(node, [&] {
    charge(kStepCost);
    return execute(node, scope);
  });
}

Evaluator::Flow Evaluator::execute(const Node& node, Scope& scope) {
  switch (node.op) {
    case Op::kText:
      write(node.text);
      return Flow::kOn;
    case Op::kPrint:
      write(to_text(value(node.children[0], scope)));
      return Flow::kOn;
    case Op::kBody:
      return body(node, scope);
    case Op::kIf:
      return statement(node.children[truth(value(node.children[0], scope)) ? 1 : 2], scope);
    case Op::kFor:
      return loop(node, value(node.children[0], scope), scope, 0);
    case Op::kWith:
      return with(node, scope);
    case Op::kBreak:
      return Flow::kBreak;
    case Op::kContinue:
      return Flow::kContinue;
    case Op::kGeneration:
      return generation(node, scope);
    case Op::kNothing:
      return Flow::kOn;
    default:
      definition(node, scope);
      return Flow::kOn;
  }
}

Evaluator::Flow Evaluator::generation(const Node& node, Scope& scope) {
  const size_t begin = out_->size();
  const Flow flow = statement(node.children[0], scope);
  if (out_ == &whole_.text && out_->size() > begin) whole_.marked.emplace_back(begin, out_->size());
  return flow;
}

Evaluator::Flow Evaluator::body(const Node& node, Scope& scope) {
  const Level level(levels_);
  for (const Node& child : node.children)
    if (const Flow flow = statement(child, scope); flow != Flow::kOn) return flow;
  return Flow::kOn;
}

// The values are computed in the scope around, so that they see nothing of each other.
Evaluator::Flow Evaluator::with(const Node& node, Scope& scope) {
  Scope inner{{}, &scope};
  for (size_t i = 0; i < node.names.size(); ++i) inner.variables[node.names[i]] = value(node.children[i + 1], scope);
  return statement(node.children[0], inner);
}

Evaluator::Flow Evaluator::loop(const Node& node, const Value& all, Scope& scope, int64_t depth) {
  const Level level(levels_);
  const auto items = kept_items(node, all, scope);
  if (items->empty()) return statement(node.children[3], scope);
  const auto last = std::make_shared<List>();
  for (size_t i = 0; i < items->size(); ++i) {
    Scope inner{{}, &scope};
    inner.variables["loop"] = Loop{static_cast<int64_t>(i), depth, items, node.text.empty() ? nullptr : &node, last};
    assign(node.names, (*items)[i], inner);
    if (statement(node.children[2], inner) == Flow::kBreak) break;
  }
  return Flow::kOn;
}

// Returns the items of a loop that its condition keeps.
std::shared_ptr<const List> Evaluator::kept_items(const Node& node, const Value& items, Scope& scope) {
  const auto all = items_of(items);
  if (node.children[1].op == Op::kNothing) return all;
  List kept;
  for (const Value& item : *all) {
    Scope inner{{}, &scope};
    assign(node.names, item, inner);
    if (truth(value(node.children[1], inner))) kept.push_back(item);
  }
  return Value(std::move(kept)).shared_list();
}

void Evaluator::assign(const std::vector<std::string>& names, const Value& to, Scope& scope) {
  if (names.size() == 1) {
    scope.variables[names[0]] = to;
    return;
  }
  const auto parts = items_of(to);
  if (parts->size() != names.size()) refuse(fmt::format("{} values", names.size()), fmt::format("{}", parts->size()));
  for (size_t i = 0; i < names.size(); ++i) scope.variables[names[i]] = (*parts)[i];
}

void Evaluator::definition(const Node& node, Scope& scope) {
  const auto text = [&] { return Value(captured(node.children[0], scope)); };
  if (node.op == Op::kSet || node.op == Op::kSetBlock) {
    const bool block = node.op == Op::kSetBlock;
    const Value to = block ? filtered(node.children[1], scope, text()) : value(node.children[0], scope);
    return node.text.empty() ? assign(node.names, to, scope) : assign_member(node, to, scope);
  }
  if (node.op == Op::kMacro) {
    scope.variables[node.text] = Macro{&node, &scope == &root_ ? nullptr : &scope};
  } else if (node.op == Op::kCallBlock) {
    write(to_text(call(node.children[0], scope, Macro{&node, &scope})));
  } else {
    write(to_text(filtered(node.children[1], scope, text())));
  }
}

void Evaluator::assign_member(const Node& node, const Value& to, Scope& scope) {
  const Value of = variable(node.names[0], scope);
  if (!of.is<std::shared_ptr<Namespace>>()) refuse(fmt::format("'{}' to be a namespace", node.names[0]), of.kind());
  Named& members = of.as<std::shared_ptr<Namespace>>()->members;
  charge(members.size());
  const auto same = std::ranges::find(members, node.text, &Named::value_type::first);
  (same == members.end() ? members.emplace_back(node.text, Value()) : *same).second = to;
}

// Returns a block's text after its filters, of which the first is the innermost; without a filter the text itself.
Value Evaluator::filtered(const Node& filter, Scope& scope, Value of) {
  if (filter.op == Op::kNothing) return of;
  Value inner = filtered(filter.children[0], scope, std::move(of));
  return apply_filter(filter.text, arguments_of(filter, scope, std::move(inner)));
}

// Returns the text that a body writes.
std::string Evaluator::captured(const Node& node, Scope& scope) {
  std::string text;
  const Restore restore(out_, std::exchange(out_, &text));
  Scope inner{{}, &scope};
  statement(node, inner);
  return text;
}

// Returns what a recursive loop writes for other items.
std::string Evaluator::looped(const Loop& of, const Value& items, Scope& scope) {
  std::string text;
  const Restore restore(out_, std::exchange(out_, &text));
  loop(*of.node, items, scope, of.depth + 1);
  return text;
}

void Evaluator::write(const std::string& text) {
  charge(text.size());
  *out_ += text;
}

}  // namespace collimate::text::jinja
