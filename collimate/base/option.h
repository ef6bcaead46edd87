#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/option_check.h"
#include "collimate/base/section.h"

namespace collimate::base {

namespace detail {

// An option has one of these types: bool, int64_t, double, std::string, std::vector of the last three, std::optional of
// all four (`null` is no value), nlohmann::json (any subtree) or JsonText. `read_value` throws InputError naming
// `path`, the expected type and what was found. For a list option a scalar is read as a list of that one entry.
template <class T>
struct ConfigValue {
  static std::string type_name();
  static T read_value(const ConfigNode& node, const std::string& path);
  static ConfigNode to_value(const T& value);
};

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

std::string value_as_yaml(const ConfigNode& value);
[[noreturn]] void refuse_value(const std::string& where, const std::string& path, const std::string& expected,
                               const ConfigNode& got, const std::string& why);
[[noreturn]] void check_failed_for(const std::string& where, const std::string& path, const std::string& expected,
                                   const ConfigNode& got, const std::vector<std::string>& choices);

}  // namespace detail

// An Option declares key, default, unit ("" for none), help and checks once; YAML reading, --set, help, the reference
// page and the resolved configuration follow from it. It reads as `const T&`. A value that code assigns is checked only
// by Section::check_section. COLLIMATE_OPTION declares an option whose member is named like its key.
template <class T>
class Option : public ConfigItem {
 public:
  template <class... Traits>
  Option(Section* parent, std::string name, std::type_identity_t<T> default_value, std::string unit, std::string help,
         Traits&&... traits)
      : ConfigItem(std::move(name), std::move(help)), value_(default_value) {
    auto spec = std::make_shared<Spec>(
        Spec{std::move(default_value), std::move(unit), {}, true, detail::kIsVector<T>, {}, nullptr});
    (add_trait(*spec, std::forward<Traits>(traits)), ...);
    spec_ = std::move(spec);
    parent->add_item(this);
  }
  Option(const Option&) = default;
  Option& operator=(const Option&) = default;
  Option& operator=(std::type_identity_t<T> value) {
    value_ = std::move(value);
    return *this;
  }

  operator const T&() const { return value_; }
  const T& get() const { return value_; }
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }
  auto begin() const requires requires(const T& t) { t.begin(); }
  { return value_.begin(); }
  auto end() const requires requires(const T& t) { t.end(); }
  { return value_.end(); }

  // Returns "config.yaml:12" where the user set the option, or "" while it has its default.
  const std::string& where() const { return where_; }

  template <class U>
  requires(!std::derived_from<U, ConfigItem>) friend bool operator==(const Option& option, const U& other) {
    return option.value_ == other;
  }

  void item_read(const ConfigNode& node, const std::string& path) override {
    value_ = detail::ConfigValue<T>::read_value(node, path);
    where_ = node.where;
    item_check(path);
  }
  void item_check(const std::string& path) const override {
    for (const auto& check : spec_->checks) {
      if (!check.holds(value_)) {
        detail::check_failed_for(where_, path, check.text, detail::ConfigValue<T>::to_value(value_), check.choices);
      }
    }
  }
  // Throws, for Section::section_demands, the InputError that this option of the section at `section_path` is not
  // `expected`. The error names the place where the option was set; `why` gives the reason where that is not plain.
  [[noreturn]] void item_refuse(const std::string& section_path, const std::string& expected,
                                const std::string& why = "") const {
    detail::refuse_value(where_, join_path(section_path, item_name()), expected,
                         detail::ConfigValue<T>::to_value(value_), why);
  }
  ConfigNode item_value(bool hashed_only) const override {
    const bool in_part = hashed_only && spec_->hashed_part != nullptr;
    return detail::ConfigValue<T>::to_value(in_part ? spec_->hashed_part(value_) : value_);
  }
  bool item_hashed() const override { return spec_->hashed; }
  void item_describe(const std::string& path, std::vector<OptionInfo>& out) const override {
    std::string limits;
    for (const auto& check : spec_->checks) limits += (limits.empty() ? "" : ", ") + check.text;
    const bool entries = spec_->list && !detail::kIsVector<T>;
    out.push_back({path, entries ? "a list, or its one entry" : detail::ConfigValue<T>::type_name(),
                   detail::value_as_yaml(detail::ConfigValue<T>::to_value(spec_->default_value)), spec_->unit,
                   item_help(), limits, spec_->list, "", spec_->read});
  }

 private:
  struct Spec {
    T default_value;
    std::string unit;
    std::vector<Check<T>> checks;
    bool hashed;
    bool list;
    only_with read;
    T (*hashed_part)(const T& value);
  };

  static void add_trait(Spec& spec, outside_hash) { spec.hashed = false; }
  static void add_trait(Spec& spec, entry_list) { spec.list = true; }
  static void add_trait(Spec& spec, only_with read) { spec.read = std::move(read); }
  static void add_trait(Spec& spec, hashed_part<T> part) { spec.hashed_part = part.of; }
  template <class C>
  requires std::convertible_to<C, Check<T>>
  static void add_trait(Spec& spec, const C& check) { spec.checks.push_back(check); }

  T value_;
  std::shared_ptr<const Spec> spec_;
  std::string where_;
};

}  // namespace collimate::base

// In a Section write COLLIMATE_OPTION(int64_t, save_every, 50, "iterations", "how often to save", checks...);
#define COLLIMATE_OPTION(type, name, ...) \
  ::collimate::base::Option<type> name { this, #name, __VA_ARGS__ }

// An option is printed as its value.
template <class T>
struct fmt::formatter<collimate::base::Option<T>> : fmt::formatter<T> {
  template <class FormatContext>
  auto format(const collimate::base::Option<T>& option, FormatContext& context) const {
    return fmt::formatter<T>::format(option.get(), context);
  }
};
