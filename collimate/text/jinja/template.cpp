#include "collimate/text/jinja/template.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/text/jinja/budget.h"
#include "collimate/text/jinja/calls.h"
#include "collimate/text/jinja/search.h"
#include "collimate/text/jinja/syntax.h"

namespace collimate::text::jinja {

// Variables of a body; those of the bodies around it are seen, not changed.
struct Scope {
  std::map<std::string, Value> variables;
  Scope* around = nullptr;
};

namespace {

enum class Flow { kOn, kBreak, kContinue };

// A LineError names the line of what goes wrong, which the innermost statement adds once.
class LineError : public base::InputError {
 public:
  using base::InputError::InputError;
};

class Evaluator {
 public:
  explicit Evaluator(Scope& root) : root_(root) {}
  // Namespaces may hold each other in any number, in circles too.
  ~Evaluator() {
    for (const auto& made : namespaces_) made->members.clear();
  }
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  MarkedText run(const Node& body) {
    out_ = &whole_.text;
    statement(body, root_);
    return std::move(whole_);
  }

 private:
  // Runs something whose errors are of that line.
  template <class Run>
  auto at_line(const Node& node, const Run& run) {
    try {
      return run();
    } catch (const LineError&) {
      throw;
    } catch (const base::InputError& error) {
      std::string what = error.what();
      const std::string begin = "[chat template]";
      if (what.starts_with(begin))
        what = fmt::format("[chat template line {}]{}", node.line, what.substr(begin.size()));
      throw LineError(what);
    }
  }

  // ---- statements
  Flow statement(const Node& node, Scope& scope) {
    return at_line(node, [&] {
      charge(kStepCost);
      return execute(node, scope);
    });
  }

  Flow execute(const Node& node, Scope& scope) {
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
        return loop(node, scope);
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

  Flow generation(const Node& node, Scope& scope) {
    const size_t begin = out_->size();
    const Flow flow = statement(node.children[0], scope);
    if (out_ == &whole_.text && out_->size() > begin) whole_.marked.emplace_back(begin, out_->size());
    return flow;
  }

  Flow body(const Node& node, Scope& scope) {
    const Level level(levels_);
    for (const Node& child : node.children)
      if (const Flow flow = statement(child, scope); flow != Flow::kOn) return flow;
    return Flow::kOn;
  }

  Flow loop(const Node& node, Scope& scope) {
    const auto items = kept_items(node, scope);
    if (items->empty()) return statement(node.children[3], scope);
    for (size_t i = 0; i < items->size(); ++i) {
      Scope inner{{}, &scope};
      inner.variables["loop"] = Loop{static_cast<int64_t>(i), items};
      assign(node.names, (*items)[i], inner);
      if (statement(node.children[2], inner) == Flow::kBreak) break;
    }
    return Flow::kOn;
  }

  // Returns the items of a loop that its condition keeps.
  std::shared_ptr<const List> kept_items(const Node& node, Scope& scope) {
    const auto all = items_of(value(node.children[0], scope));
    if (node.children[1].op == Op::kNothing) return all;
    List kept;
    for (const Value& item : *all) {
      Scope inner{{}, &scope};
      assign(node.names, item, inner);
      if (truth(value(node.children[1], inner))) kept.push_back(item);
    }
    return Value(std::move(kept)).shared_list();
  }

  void assign(const std::vector<std::string>& names, const Value& to, Scope& scope) {
    if (names.size() == 1) {
      scope.variables[names[0]] = to;
      return;
    }
    const auto parts = items_of(to);
    if (parts->size() != names.size()) refuse(fmt::format("{} values", names.size()), fmt::format("{}", parts->size()));
    for (size_t i = 0; i < names.size(); ++i) scope.variables[names[i]] = (*parts)[i];
  }

  void definition(const Node& node, Scope& scope) {
    if (node.op == Op::kSet || node.op == Op::kSetBlock) {
      const Value to = node.op == Op::kSet ? value(node.children[0], scope) : Value(captured(node.children[0], scope));
      return node.text.empty() ? assign(node.names, to, scope) : assign_member(node, to, scope);
    }
    if (node.op == Op::kMacro) {
      scope.variables[node.text] = Macro{&node, nullptr};
    } else if (node.op == Op::kCallBlock) {
      write(to_text(call(node.children[0], scope, Macro{&node, &scope})));
    } else {
      Arguments arguments = arguments_of(node.children[1], scope, Value(captured(node.children[0], scope)));
      write(to_text(apply_filter(node.children[1].text, arguments)));
    }
  }

  void assign_member(const Node& node, const Value& to, Scope& scope) {
    const Value of = variable(node.names[0], scope);
    if (!of.is<std::shared_ptr<Namespace>>()) refuse(fmt::format("'{}' to be a namespace", node.names[0]), of.kind());
    Named& members = of.as<std::shared_ptr<Namespace>>()->members;
    charge(members.size());
    const auto same = std::ranges::find(members, node.text, &Named::value_type::first);
    (same == members.end() ? members.emplace_back(node.text, Value()) : *same).second = to;
  }

  // Returns the text that a body writes.
  std::string captured(const Node& node, Scope& scope) {
    std::string text;
    std::string* const outer = std::exchange(out_, &text);
    const Restore restore(out_, outer);
    Scope inner{{}, &scope};
    statement(node, inner);
    return text;
  }

  // ---- expressions
  Value value(const Node& node, Scope& scope) {
    const Level level(levels_);
    charge(kStepCost);
    const auto child = [&](size_t i) { return value(node.children[i], scope); };
    switch (node.op) {
      case Op::kNothing:
        return Undefined{"a value that is not given"};
      case Op::kValue:
        return node.value;
      case Op::kName: {
        Value found = variable(node.text, scope);
        const bool is_caller = found.is<Macro>() && found.as<Macro>().scope != nullptr;
        return is_caller ? Function{"caller"} : std::move(found);  // it must not outlive its scope
      }
      case Op::kList:
        return list(node, scope);
      case Op::kDict:
        return dictionary(node, scope);
      case Op::kAttribute:
        return attribute_of(child(0), node.text);
      case Op::kItem:
        return item_of(child(0), child(1));
      case Op::kSlice:
        return slice_of(child(0), child(1), child(2), child(3));
      case Op::kCall:
        return call(node, scope, std::nullopt);
      case Op::kFilter:
        return apply_filter(node.text, arguments_of(node, scope, child(0)));
      case Op::kTest:
        return apply_test(node.text, arguments_of(node, scope, child(0)));
      default:
        return operation(node, scope);
    }
  }

  Value operation(const Node& node, Scope& scope) {
    const auto child = [&](size_t i) { return value(node.children[i], scope); };
    switch (node.op) {
      case Op::kNot:
        return !truth(child(0));
      case Op::kNegative:
        return negative(child(0));
      case Op::kAnd: {
        Value left = child(0);
        return truth(left) ? child(1) : left;
      }
      case Op::kOr: {
        Value left = child(0);
        return truth(left) ? left : child(1);
      }
      case Op::kBinary:
        return calculate(node.text, child(0), child(1));
      case Op::kCompare:
        return compared(node, scope);
      case Op::kChoice:
        return truth(child(0)) ? child(1) : child(2);
      default:
        refuse("an expression", "a statement");
    }
  }

  Value variable(const std::string& name, const Scope& scope) const {
    for (const Scope* at = &scope; at != nullptr; at = at->around)
      if (const auto found = at->variables.find(name); found != at->variables.end()) return found->second;
    if (is_function(name)) return Function{name};
    return Undefined{name};
  }

  Value list(const Node& node, Scope& scope) {
    List items;
    for (const Node& child : node.children) items.push_back(value(child, scope));
    return items;
  }
  Value dictionary(const Node& node, Scope& scope) {
    Dict members;
    for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
      Value key = value(node.children[i], scope);
      if (key.is_list() || key.is_dict()) refuse("a text or a number as a key", key.kind());
      Value member = value(node.children[i + 1], scope);
      const auto same = std::ranges::find_if(members, [&](const auto& each) { return equal(each.first, key); });
      if (same == members.end()) {
        members.emplace_back(std::move(key), std::move(member));
      } else {
        same->second = std::move(member);
      }
    }
    return members;
  }

  Value compared(const Node& node, Scope& scope) {
    Value left = value(node.children[0], scope);
    for (size_t i = 0; i < node.names.size(); ++i) {
      Value right = value(node.children[i + 1], scope);
      if (!holds(node.names[i], left, right)) return false;
      left = std::move(right);
    }
    return true;
  }
  static bool holds(const std::string& sign, const Value& a, const Value& b) {
    if (sign == "==") return equal(a, b);
    if (sign == "!=") return !equal(a, b);
    if (sign == "in") return contains(b, a);
    if (sign == "not in") return !contains(b, a);
    if (sign == "<") return less(a, b);
    if (sign == ">") return less(b, a);
    return sign == "<=" ? !less(b, a) : !less(a, b);
  }

  // Returns the arguments of a filter, test or call, behind `of` where it is given.
  Arguments arguments_of(const Node& node, Scope& scope, std::optional<Value> of) {
    Arguments arguments;
    if (of) arguments.positional.push_back(std::move(*of));
    for (size_t i = 1; i < node.children.size(); ++i) arguments.positional.push_back(value(node.children[i], scope));
    for (const auto& [name, given] : node.named) arguments.named.emplace_back(name, value(given, scope));
    return arguments;
  }

  Value call(const Node& node, Scope& scope, std::optional<Macro> caller) {
    const Node& callee = node.children[0];
    if (callee.op == Op::kName) {
      const Value macro = variable(callee.text, scope);
      if (macro.is<Macro>()) return call_macro(macro.as<Macro>(), arguments_of(node, scope, {}), caller);
      if (macro.is<Function>()) return call_known(macro.as<Function>(), arguments_of(node, scope, {}));
      refuse("a function or macro", fmt::format("'{}'", callee.text));
    }
    if (callee.op != Op::kAttribute) refuse("a function, macro or method", "another value");
    Value of = value(callee.children[0], scope);
    if (of.is<Loop>() && callee.text == "cycle") return cycled(of.as<Loop>(), arguments_of(node, scope, {}));
    if (of.is<Undefined>()) attribute_of(of, callee.text);  // refuses
    if (const Value member =
            of.is_dict() || of.is<std::shared_ptr<Namespace>>() ? attribute_of(of, callee.text) : Value();
        member.is<Macro>())
      return call_macro(member.as<Macro>(), arguments_of(node, scope, {}), caller);
    return call_method(callee.text, arguments_of(node, scope, std::move(of)));
  }

  Value call_known(const Function& function, const Arguments& arguments) {
    if (!is_function(function.name)) refuse("a call by the name caller", "another name for it");
    Value made = call_function(function.name, arguments);
    if (made.is<std::shared_ptr<Namespace>>()) namespaces_.push_back(made.as<std::shared_ptr<Namespace>>());
    return made;
  }

  static Value cycled(const Loop& loop, const Arguments& arguments) {
    if (arguments.positional.empty()) refuse("values to cycle through", "none");
    return arguments.positional[static_cast<size_t>(loop.index) % arguments.positional.size()];
  }

  Value call_macro(const Macro& macro, const Arguments& given, const std::optional<Macro>& caller) {
    const Node& node = *macro.node;
    Scope& around = macro.scope == nullptr ? root_ : *macro.scope;
    Scope inner{{}, &around};
    if (given.positional.size() > node.names.size())
      refuse(fmt::format("at most {} arguments of '{}'", node.names.size(), node.text),
             fmt::format("{}", given.positional.size()));
    for (size_t i = 0; i < node.names.size(); ++i) {
      const std::string& name = node.names[i];
      Value argument = given.get(i, name, Undefined{name});
      if (argument.is<Undefined>())
        for (const auto& [of, otherwise] : node.named)
          if (of == name) argument = value(otherwise, inner);
      inner.variables[name] = std::move(argument);
    }
    if (caller) inner.variables["caller"] = *caller;
    return captured(node.op == Op::kCallBlock ? node.children[1] : node.children[0], inner);
  }

  // ---- bounds
  class Restore {
   public:
    Restore(std::string*& place, std::string* to) : place_(place), to_(to) {}
    ~Restore() { place_ = to_; }

   private:
    std::string*& place_;
    std::string* to_;
  };
  void write(const std::string& text) {
    charge(text.size());
    *out_ += text;
  }

  Scope& root_;
  MarkedText whole_;
  std::string* out_ = nullptr;                          // whole_'s, or what is captured
  std::vector<std::shared_ptr<Namespace>> namespaces_;  // all that were made
  int levels_ = 0;
};

}  // namespace

struct Template::Impl {
  Node body;
};

Template::Template(const std::string& source) : impl_(std::make_unique<const Impl>(Impl{parse(source)})) {}
Template::Template(Template&& other) noexcept = default;
Template::~Template() = default;

bool Template::reads(const std::string& variable) const { return jinja::reads(impl_->body, variable); }
bool Template::mentions(const std::string& word) const { return jinja::mentions(impl_->body, word); }
bool Template::marks() const { return jinja::marks(impl_->body); }

MarkedText Template::render_marked(const nlohmann::ordered_json& variables) const {
  Scope root;
  for (const auto& [name, variable] : variables.items()) root.variables[name] = from_json(variable);
  const Budget budget;
  return Evaluator(root).run(impl_->body);
}

}  // namespace collimate::text::jinja
