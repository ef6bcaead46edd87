#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/text/jinja/budget.h"
#include "collimate/text/jinja/calls.h"
#include "collimate/text/jinja/syntax.h"
#include "collimate/text/jinja/template.h"

namespace collimate::text::jinja {

// The variables of a body, which sees those of the bodies around it but does not change them.
struct Scope {
  std::map<std::string, Value> variables;
  Scope* around = nullptr;
};

// Runs a template's statements over the variables of a scope. Throws InputError, which names the line of what goes
// wrong. Used once, by one thread.
class Evaluator {
 public:
  explicit Evaluator(Scope& root) : root_(root) {}
  // Empties all namespaces, as they may hold each other in any number, in circles too.
  ~Evaluator() {
    for (const auto& made : namespaces_) made->members.clear();
  }
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  MarkedText run(const Node& body);

 private:
  enum class Flow { kOn, kBreak, kContinue };

  // ---- statements: evaluator.cpp
  Flow statement(const Node& node, Scope& scope);
  Flow execute(const Node& node, Scope& scope);
  Flow generation(const Node& node, Scope& scope);
  Flow body(const Node& node, Scope& scope);
  Flow with(const Node& node, Scope& scope);
  Flow loop(const Node& node, const Value& items, Scope& scope, int64_t depth);
  std::shared_ptr<const List> kept_items(const Node& node, const Value& items, Scope& scope);
  void assign(const std::vector<std::string>& names, const Value& to, Scope& scope);
  void definition(const Node& node, Scope& scope);
  void assign_member(const Node& node, const Value& to, Scope& scope);
  Value filtered(const Node& filter, Scope& scope, Value of);
  std::string looped(const Loop& of, const Value& items, Scope& scope);
  std::string captured(const Node& node, Scope& scope);
  void write(const std::string& text);

  // ---- expressions: expressions.cpp
  Value value(const Node& node, Scope& scope);
  Value operation(const Node& node, Scope& scope);
  Value variable(const std::string& name, const Scope& scope) const;
  Value list(const Node& node, Scope& scope);
  Value dictionary(const Node& node, Scope& scope);
  Value attribute(const Node& node, Scope& scope);
  Value compared(const Node& node, Scope& scope);

  // ---- calls: expressions.cpp
  Arguments arguments_of(const Node& node, Scope& scope, std::optional<Value> of);
  Value call(const Node& node, Scope& scope, const std::optional<Macro>& caller);
  Value call_named(const Node& node, Scope& scope, const std::optional<Macro>& caller);
  Value call_known(const Function& function, const Arguments& arguments);
  Value call_again(const std::string& name, const Arguments& arguments, Scope& scope);
  void bind_parameters(const Node& node, Arguments& given, Scope& inner);
  void bind_rest(const Node& node, Arguments& rest, const std::optional<Macro>& caller, Scope& inner);
  Value call_macro(const Macro& macro, Arguments given, const std::optional<Macro>& caller);

  Scope& root_;
  MarkedText whole_;
  std::string* out_ = nullptr;                          // text of whole_, or of what is captured
  std::vector<std::shared_ptr<Namespace>> namespaces_;  // all that were made
  int levels_ = 0;
};

}  // namespace collimate::text::jinja
