#include "collimate/cli/arguments.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/base/config_yaml.h"
#include "collimate/base/error.h"

namespace collimate::cli {

namespace {

// at_least() and from_to() say of their option "--n: expected 1 or more, got 0"; CLI11's other texts are quoted.
[[noreturn]] void throw_parse_error(const std::string& text, const std::string& verb) {
  const std::string help = fmt::format("collimate {} --help", verb);
  if (const size_t colon = text.find(": expected "); colon != std::string::npos)
    throw base::InputError(fmt::format("[{}] {}; try {}", text.substr(0, colon), text.substr(colon + 2), help));
  throw base::InputError(base::expectation("collimate " + verb, "arguments that it knows", text, help));
}

CLI::Validator number_from(double minimum, double maximum, const std::string& wanted) {
  return CLI::Validator(
      [minimum, maximum, wanted](const std::string& text) {
        double value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && value >= minimum && value <= maximum;
        return fits ? std::string() : fmt::format("expected {}, got {}", wanted, text);
      },
      wanted);
}

}  // namespace

bool parse(CLI::App& app, const Arguments& arguments) {
  Arguments reversed = arguments;
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return false;
  } catch (const CLI::ParseError& error) {
    throw_parse_error(error.what(), app.get_name());
  }
  return true;
}

CLI::Validator at_least(double minimum) {
  return number_from(minimum, std::numeric_limits<double>::infinity(), fmt::format("{} or more", minimum));
}

CLI::Validator from_to(double minimum, double maximum) {
  return number_from(minimum, maximum, fmt::format("{} to {}", minimum, maximum));
}

void print_json(const nlohmann::ordered_json& document) {
  fmt::print("{}\n", document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
  std::fflush(stdout);
}

namespace {

// A flag's value as --set reads it; where texts are meant, what is no JSON list is one text as it stands ("[INST]").
base::ConfigNode flag_value(const std::string& text, bool texts, const std::string& flag) {
  if (!texts) return base::parse_yaml_value(text, flag);
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  return base::from_json(list.is_array() ? list : nlohmann::json(text), flag);
}

}  // namespace

void add_flags(CLI::App& app, base::Section& section) {
  std::vector<base::OptionInfo> options;
  section.describe_section("", options);
  for (const base::OptionInfo& option : options) {
    std::string flag = "--" + option.path;
    std::replace(flag.begin(), flag.end(), '_', '-');
    const bool texts = option.type.ends_with("a string");
    const auto read = [&section, flag, texts, path = option.path](const std::string& text) {
      base::ConfigNode given{.kind = base::ConfigNode::Kind::kMap, .where = flag};
      given.child(path) = flag_value(text, texts, flag);
      base::apply(given, "", section);
    };
    const std::string limits = option.limits.empty() ? "" : option.limits + "; ";
    app.add_option_function<std::string>(flag, read,
                                         fmt::format("{} ({}default {})", option.help, limits, option.default_value));
  }
}

}  // namespace collimate::cli
