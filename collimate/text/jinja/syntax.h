#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collimate/text/jinja/value.h"

namespace collimate::text::jinja {

enum class Op {
  // Statements. Each comment lists the node's `children` in order, and then its other members.
  kText,         // text
  kPrint,        // expression
  kFor,          // items, condition or kNothing, body, else; `names` the variables;
                 // `text` says recursive or nothing
  kIf,           // condition, then, else
  kSet,          // value or body; `names` the variables, or one and its attribute in `text`
  kSetBlock,     // body, a filter or nothing
  kWith,         // body, values; `names` their variables
  kMacro,        // body, defaults as `named`; `names` its parameters; `value` says which of caller, varargs and kwargs
                 // it reads
  kCallBlock,    // call, body; `names` the parameters of the caller; `value` as for a macro
  kFilterBlock,  // body; a filter in `text` with its arguments behind
  kGeneration,   // body: what an assistant writes
  kBreak,
  kContinue,
  kBody,  // statements
  kNothing,
  // Expressions.
  kValue,      // value
  kName,       // text
  kList,       // `text` says tuple or nothing
  kDict,       // keys and values in turn
  kAttribute,  // of, `text`
  kItem,       // of, key
  kSlice,      // of, first, last, step, each or kNothing
  kCall,       // callee, arguments; `named`
  kEach,       // an argument of a call: all items of a list, or with `text` of a
               // dictionary
  kFilter,     // of, arguments; `text`, `named`
  kTest,       // of, arguments; `text`
  kNot,
  kNegative,
  kAnd,
  kOr,
  kBinary,   // `text` one of + - * / // % ** ~
  kCompare,  // first, others; operators in `names`
  kChoice    // condition, then, else
};

struct Node {
  Op op = Op::kNothing;
  int line = 0;
  std::string text = {};
  Value value = {};
  std::vector<Node> children = {};
  std::vector<std::pair<std::string, Node>> named = {};
  std::vector<std::string> names = {};
  int levels = 0;  // how deep expressions stand in each other, as operators in a chain do too
};

// Returns a template as its statements. Throws InputError, which names the line, for what the language does not have,
// and for what it has but is not built here.
Node parse(const std::string& source);

}  // namespace collimate::text::jinja
