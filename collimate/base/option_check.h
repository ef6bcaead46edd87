#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace collimate::base {

// A Check says what a value must satisfy, in words ("at least 1") and in code. `choices` is set by `one_of` alone.
template <class T>
struct Check {
  std::string text;
  std::function<bool(const T&)> holds;
  std::vector<std::string> choices = {};
};

namespace detail {

template <class T>
struct Element {
  using type = T;
};
template <class T>
struct Element<std::optional<T>> {
  using type = T;
};
template <class T>
struct Element<std::vector<T>> {
  using type = T;
};

// Returns whether `test` holds for a scalar, for every entry of a list, or for the value of an optional if it has one.
template <class T, class Test>
bool holds_everywhere(const T& value, const Test& test) {
  if constexpr (std::is_same_v<T, typename Element<T>::type>) {
    return test(value);
  } else if constexpr (std::is_same_v<T, std::optional<typename Element<T>::type>>) {
    return !value || test(*value);
  } else {
    for (const auto& entry : value) {
      if (!test(entry)) return false;
    }
    return true;
  }
}

// An ElementCheck is a test of one element. It converts to the Check of the option that it is given to.
template <class Test>
struct ElementCheck {
  std::string text;
  Test test;
  std::vector<std::string> choices = {};

  template <class T>
  operator Check<T>() const {
    return {text, [check = test](const T& value) { return holds_everywhere(value, check); }, choices};
  }
};
template <class Test>
ElementCheck(std::string, Test) -> ElementCheck<Test>;
template <class Test>
ElementCheck(std::string, Test, std::vector<std::string>) -> ElementCheck<Test>;

}  // namespace detail

// These checks are given after the help text of an Option. On a list they must hold for each entry, on an optional for
// its value if it has one. NaN fails them.
template <class V>
auto at_least(V low) {
  return detail::ElementCheck{fmt::format("at least {}", low), [low](const auto& value) { return value >= low; }};
}
template <class V>
auto at_most(V high) {
  return detail::ElementCheck{fmt::format("at most {}", high), [high](const auto& value) { return value <= high; }};
}
template <class V>
auto above(V low) {
  return detail::ElementCheck{fmt::format("above {}", low), [low](const auto& value) { return value > low; }};
}
template <class V>
auto below(V high) {
  return detail::ElementCheck{fmt::format("below {}", high), [high](const auto& value) { return value < high; }};
}
template <class V>
auto between(V low, V high) {
  return detail::ElementCheck{fmt::format("between {} and {}", low, high),
                              [low, high](const auto& value) { return value >= low && value <= high; }};
}
inline auto not_empty() {
  return detail::ElementCheck{std::string("not empty"), [](const std::string& value) { return !value.empty(); }};
}
// The value is one of these strings.
inline auto one_of(std::vector<std::string> choices) {
  auto test = [choices](const std::string& value) {
    for (const auto& choice : choices) {
      if (choice == value) return true;
    }
    return false;
  };
  return detail::ElementCheck{fmt::format("one of \"{}\"", fmt::join(choices, "\", \"")), test, choices};
}
// The value has any other property; `text` completes "expected KEY to be ...".
template <class Test>
auto satisfying(std::string text, Test test) {
  return detail::ElementCheck{std::move(text), std::move(test)};
}
// The list has at least `count` entries.
struct at_least_entries {
  size_t count;
  template <class T>
  operator Check<std::vector<T>>() const {
    return {fmt::format("a list of at least {}", count),
            [least = count](const std::vector<T>& value) { return value.size() >= least; }};
  }
};

// The option is a list, of which a single entry may be written without the list; `--set key.0…` reaches that entry.
// Options that are lists of scalars behave so without this trait.
struct entry_list {};

// Leaves the option out of `config_hash`, which covers what is trained. Such an option says where or for how long a run
// trains or what is kept, and may change between a run and its resumption.
struct outside_hash {};

// Hashes only what `of` returns for the value. An option whose entries have options of their own leaves out those that
// are outside the hash.
template <class T>
struct hashed_part {
  T (*of)(const T& value);
};

}  // namespace collimate::base
