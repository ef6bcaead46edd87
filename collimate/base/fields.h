#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>

// A struct names its fields once: COLLIMATE_FIELDS(lost, cause) in its body defines a static function that passes each
// field to a visitor. COLLIMATE_MEMBERS(lost, cause) does so for a class whose members are lost_ and cause_. A function
// that says more about a field is written out:
//
//   static void fields(auto& self, auto&& field) {
//     field("lost", self.lost_);
//     field("cause", self.cause_, "why the worker went");
//   }
//
// Conversion to and from JSON follows, nested and in containers: `json(value)`, `in.at("workers").get_to(workers_)`.
// Reading requires every field (nlohmann::json::exception otherwise), as a saved state has them. Text that people write
// is read with graph::JsonFields or base::Section instead, which name the place of an error. Arguments after a field's
// value are for visitors that show the field, such as serve's metrics.
#define COLLIMATE_FIELD(name) field(#name, self.name);
#define COLLIMATE_FIELDS(...) \
  static void fields(auto& self, auto&& field) { NLOHMANN_JSON_PASTE(COLLIMATE_FIELD, __VA_ARGS__) }
#define COLLIMATE_MEMBER(name) field(#name, self.name##_);
#define COLLIMATE_MEMBERS(...) \
  static void fields(auto& self, auto&& field) { NLOHMANN_JSON_PASTE(COLLIMATE_MEMBER, __VA_ARGS__) }

namespace collimate::base {

struct NoVisitor {
  void operator()(const char*, const auto&, const auto&...) const {}
};

template <class T>
concept HasFields = requires(const T& value) {
  T::fields(value, NoVisitor{});
};

}  // namespace collimate::base

template <collimate::base::HasFields T>
struct nlohmann::adl_serializer<T> {
  template <class Json>
  static void to_json(Json& out, const T& value) {
    out = Json::object();
    T::fields(value, [&](const char* name, const auto& field, const auto&...) { out[name] = field; });
  }
  template <class Json>
  static void from_json(const Json& in, T& value) {
    T::fields(value, [&](const char* name, auto& field, const auto&...) { in.at(name).get_to(field); });
  }
};

// An empty optional is null in JSON.
template <class T>
requires(!nlohmann::detail::is_basic_json<T>::value) struct nlohmann::adl_serializer<std::optional<T>> {
  template <class Json>
  static void to_json(Json& out, const std::optional<T>& value) {
    if (value)
      out = *value;
    else
      out = nullptr;
  }
  template <class Json>
  static void from_json(const Json& in, std::optional<T>& value) {
    if (in.is_null())
      value.reset();
    else
      value = in.template get<T>();
  }
};
