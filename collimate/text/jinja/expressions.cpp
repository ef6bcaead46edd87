// Expressions and calls of the evaluator.
#include <fmt/format.h>

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/text/jinja/evaluator.h"

namespace collimate::text::jinja {
namespace {

bool holds(const std::string& sign, const Value& a, const Value& b) {
  if (sign == "in") return contains(b, a);
  if (sign == "not in") return !contains(b, a);
  return compare(sign, a, b);
}

// Returns whether the value must not outlive a scope: a caller, or a macro of another body than the whole template's.
bool is_bound(const Value& value) { return value.is<Macro>() && value.as<Macro>().scope != nullptr; }

Value cycled(const Loop& loop, const Arguments& arguments) {
  if (arguments.positional.empty()) refuse("values to cycle through", "none");
  return base::at(arguments.positional, loop.index % std::ssize(arguments.positional));
}

// Returns whether the arguments differ from those of the loop's last call.
Value has_changed(const Loop& loop, const Arguments& arguments) {
  const bool same = !loop.last->empty() && equal(loop.last->front(), Value::tuple(arguments.positional));
  *loop.last = {Value::tuple(arguments.positional)};
  return !same;
}

// Returns whether a macro's body looks up caller, varargs or kwargs, as Jinja2 asks: the parser has noted it.
bool takes(const Node& macro, const char* name) { return contains(macro.value, name); }

Value macro_attribute(const Node& node, const std::string& name) {
  if (name == "name") return node.op == Op::kMacro ? Value(node.text) : Value(None{});
  if (name == "arguments") {
    List names;
    for (const std::string& each : node.names) names.emplace_back(each);
    return Value::tuple(std::move(names));
  }
  if (name == "caller") return takes(node, "caller");
  if (name == "catch_varargs") return takes(node, "varargs");
  if (name == "catch_kwargs") return takes(node, "kwargs");
  return Undefined{name};
}

}  // namespace

Value Evaluator::value(const Node& node, Scope& scope) {
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
      return is_bound(found) ? Function{"caller"} : std::move(found);
    }
    case Op::kList:
      return list(node, scope);
    case Op::kDict:
      return dictionary(node, scope);
    case Op::kAttribute:
      return attribute(node, scope);
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

Value Evaluator::operation(const Node& node, Scope& scope) {
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

Value Evaluator::variable(const std::string& name, const Scope& scope) const {
  for (const Scope* at = &scope; at != nullptr; at = at->around)
    if (const auto found = at->variables.find(name); found != at->variables.end()) return found->second;
  if (is_function(name)) return Function{name};
  return Undefined{name};
}

Value Evaluator::list(const Node& node, Scope& scope) {
  List items;
  for (const Node& child : node.children) items.push_back(value(child, scope));
  return node.text.empty() ? Value(std::move(items)) : Value::tuple(std::move(items));
}

Value Evaluator::dictionary(const Node& node, Scope& scope) {
  Dict members;
  for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
    Value key = value(node.children[i], scope);
    if (!is_key(key)) refuse("a text, a number or a tuple as a key", key.kind());
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

Value Evaluator::attribute(const Node& node, Scope& scope) {
  const Node& of = node.children[0];
  const Value named = of.op == Op::kName ? variable(of.text, scope) : value(of, scope);
  return named.is<Macro>() ? macro_attribute(*named.as<Macro>().node, node.text) : attribute_of(named, node.text);
}

Value Evaluator::compared(const Node& node, Scope& scope) {
  Value left = value(node.children[0], scope);
  for (size_t i = 0; i < node.names.size(); ++i) {
    Value right = value(node.children[i + 1], scope);
    if (!holds(node.names[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

// Returns the arguments of a filter, test or call, behind `of` where it is given.
Arguments Evaluator::arguments_of(const Node& node, Scope& scope, std::optional<Value> of) {
  Arguments arguments;
  if (of) arguments.positional.push_back(std::move(*of));
  for (const auto& [name, given] : node.named) arguments.named.emplace_back(name, value(given, scope));
  for (size_t i = 1; i < node.children.size(); ++i) {
    const Node& child = node.children[i];
    if (child.op != Op::kEach) {
      arguments.positional.push_back(value(child, scope));
    } else if (const Value all = value(child.children[0], scope); child.text.empty()) {
      const auto items = items_of(all);
      arguments.positional.insert(arguments.positional.end(), items->begin(), items->end());
    } else {
      if (!all.is_dict()) refuse("a dictionary behind **", all.kind());
      for (const auto& [key, member] : all.dict()) arguments.named.emplace_back(to_text(key), member);
    }
  }
  return arguments;
}

Value Evaluator::call(const Node& node, Scope& scope, const std::optional<Macro>& caller) {
  const Node& callee = node.children[0];
  if (callee.op == Op::kName) return call_named(node, scope, caller);
  if (callee.op != Op::kAttribute) {
    const Value function = value(callee, scope);
    if (function.is<Macro>()) return call_macro(function.as<Macro>(), arguments_of(node, scope, {}), caller);
    refuse("a function, macro or method", function.kind());
  }
  Value of = value(callee.children[0], scope);
  if (of.is<Loop>() && callee.text == "cycle") return cycled(of.as<Loop>(), arguments_of(node, scope, {}));
  if (of.is<Loop>() && callee.text == "changed") return has_changed(of.as<Loop>(), arguments_of(node, scope, {}));
  if (of.is<Undefined>()) attribute_of(of, callee.text);  // refuses
  if (const Value member =
          of.is_dict() || of.is<std::shared_ptr<Namespace>>() ? attribute_of(of, callee.text) : Value();
      member.is<Macro>())
    return call_macro(member.as<Macro>(), arguments_of(node, scope, {}), caller);
  return call_method(callee.text, arguments_of(node, scope, std::move(of)));
}

Value Evaluator::call_named(const Node& node, Scope& scope, const std::optional<Macro>& caller) {
  const std::string& name = node.children[0].text;
  const Value found = variable(name, scope);
  Arguments arguments = arguments_of(node, scope, {});
  if (found.is<Macro>()) return call_macro(found.as<Macro>(), std::move(arguments), caller);
  if (found.is<Function>()) return call_known(found.as<Function>(), arguments);
  if (found.is<Loop>()) return call_again(name, arguments, scope);
  if (found.is<std::shared_ptr<Turns>>()) return call_method("", {{found}, {}});
  refuse("a function or macro", fmt::format("'{}'", name));
}

Value Evaluator::call_known(const Function& function, const Arguments& arguments) {
  if (!is_function(function.name)) refuse("a call by the name caller", "another name for it");
  Value made = call_function(function.name, arguments);
  if (made.is<std::shared_ptr<Namespace>>()) namespaces_.push_back(made.as<std::shared_ptr<Namespace>>());
  return made;
}

// Runs a recursive loop over other items, in the scope where the loop stands.
Value Evaluator::call_again(const std::string& name, const Arguments& arguments, Scope& scope) {
  const Scope* at = &scope;
  while (!at->variables.contains(name)) at = at->around;
  const Loop& of = at->variables.at(name).as<Loop>();
  if (of.node == nullptr || at->around == nullptr || arguments.positional.size() != 1)
    refuse("a recursive loop and one list", "another call of loop");
  return looped(of, arguments.of(), *at->around);
}

// Gives a macro's parameters their values, by place, by name or by default, and removes the arguments that it uses.
void Evaluator::bind_parameters(const Node& node, Arguments& given, Scope& inner) {
  const size_t places = std::min(node.names.size(), given.positional.size());
  for (size_t i = 0; i < node.names.size(); ++i) {
    const std::string& name = node.names[i];
    const auto has_name = [&](const auto& one) { return one.first == name; };
    const auto by_name = std::ranges::find_if(given.named, has_name);
    const auto otherwise = std::ranges::find_if(node.named, has_name);
    if (by_name != given.named.end()) {
      if (i < places) refuse("one value of an argument", fmt::format("two of '{}'", name));
      inner.variables[name] = std::move(by_name->second);
      given.named.erase(by_name);
    } else if (i < places) {
      inner.variables[name] = std::move(given.positional[i]);
    } else {
      inner.variables[name] = otherwise == node.named.end() ? Undefined{name} : value(otherwise->second, inner);
    }
  }
  given.positional.erase(given.positional.begin(), given.positional.begin() + static_cast<int64_t>(places));
}

// Gives the macro the rest of the arguments as varargs, kwargs and caller, where its body looks these up. Throws
// InputError for arguments that it does not take.
void Evaluator::bind_rest(const Node& node, Arguments& rest, const std::optional<Macro>& caller, Scope& inner) {
  if (!rest.positional.empty() && !takes(node, "varargs"))
    refuse(fmt::format("at most {} arguments of '{}'", node.names.size(), node.text),
           fmt::format("{}", node.names.size() + rest.positional.size()));
  if (!rest.named.empty() && !takes(node, "kwargs"))
    refuse(fmt::format("arguments of '{}'", node.text), fmt::format("'{}'", rest.named.front().first));
  if (caller && !takes(node, "caller") && !takes(node, "kwargs"))
    refuse("a macro that uses caller", fmt::format("'{}'", node.text));
  if (caller && !takes(node, "caller")) rest.named.emplace_back("caller", Function{"caller"});
  Dict named;
  for (auto& [name, other] : rest.named) named.emplace_back(Value(name), std::move(other));
  if (takes(node, "varargs")) inner.variables["varargs"] = Value::tuple(std::move(rest.positional));
  if (takes(node, "kwargs")) inner.variables["kwargs"] = Value(std::move(named));
  if (takes(node, "caller")) inner.variables["caller"] = caller ? Value(*caller) : Undefined{"caller"};
}

Value Evaluator::call_macro(const Macro& macro, Arguments given, const std::optional<Macro>& caller) {
  const Node& node = *macro.node;
  Scope inner{{}, macro.scope == nullptr ? &root_ : macro.scope};
  bind_parameters(node, given, inner);
  bind_rest(node, given, caller, inner);
  return captured(node.op == Op::kCallBlock ? node.children[1] : node.children[0], inner);
}

}  // namespace collimate::text::jinja
