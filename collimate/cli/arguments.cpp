#include "collimate/cli/arguments.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "collimate/base/config.h"
#include "collimate/base/config_yaml.h"
#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/nearest_number.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/other_names.h"
#include "collimate/recipe/plugins.h"

namespace collimate::cli {

namespace {

constexpr const char* kPluginOption = "--plugin";

constexpr char kOr = '|';  // stands between the values that an option may have

// Returns the part of `text` between two texts, nothing if either is missing. An empty `after` stands for the end.
std::optional<std::string> between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t begin = text.find(before);
  if (begin == std::string::npos) return std::nullopt;
  const size_t from = begin + before.size(), end = after.empty() ? text.size() : text.find(after, from);
  return end == std::string::npos ? std::nullopt : std::optional(text.substr(from, end - from));
}

std::string nearest_option(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return word.starts_with("--") ? base::nearest(word, names) : "";
}

bool has_option(const CLI::App& app, const std::string& name) { return app.get_option_no_throw(name) != nullptr; }

// Returns the key of a config that an option is called by, here or in another program, as "train.learning_rate"; "".
std::string key_of_option(std::string word) {
  word.erase(0, word.find_first_not_of('-'));
  word.resize(std::min(word.find('='), word.size()));
  std::ranges::replace(word, '-', '_');
  if (const std::string known = recipe::remedy_for_name(word).key; !known.empty()) return known;
  std::vector<base::OptionInfo> options;
  recipe::Config().describe_section("", options);
  for (const base::OptionInfo& option : options)
    if (option.path == word || option.path.ends_with("." + word)) return option.path;
  return "";
}

// Returns what to write in the place of a word that the app does not know, "" where nothing is known of it.
std::string remedy_for_word(const CLI::App& app, const std::string& word) {
  if (const std::string near = nearest_option(app, word); !near.empty()) return near;
  if (word.starts_with("--config") && has_option(app, "CONFIG")) return "the file alone, without --config";
  if (!word.starts_with('-') && has_option(app, "--prompt")) return fmt::format("--prompt '{}'", word);
  if (!has_option(app, "--set")) return "";
  if (!word.starts_with('-') && word.find('=') != std::string::npos) return fmt::format("--set {}", word);
  const std::string key = word.starts_with("--") ? key_of_option(word) : "";
  return key.empty() || key.starts_with('-') ? key : fmt::format("--set {}=VALUE", key);
}

// Turns the message of a parse error into an InputError. Messages such as "--n: expected 1 or more, got 0; try 1" come
// from at_least() and from_to(); all others are CLI11's.
[[noreturn]] void throw_parse_error(const CLI::App& app, const std::string& text) {
  const std::string verb = "collimate " + app.get_name(), help = verb + " --help";
  const auto fail = [&](const std::string& where, const std::string& expected, const std::string& got,
                        const std::string& remedy) {
    throw base::InputError(base::expectation(where, expected, got, remedy.empty() ? help : remedy));
  };
  if (const size_t colon = text.find(": expected "); colon != std::string::npos)
    throw base::InputError(fmt::format("[{}] {}{}", text.substr(0, colon), text.substr(colon + 2),
                                       text.find("; try ") == std::string::npos ? "; try " + help : ""));
  if (const auto unknown = between(text, "expected: ", "")) {
    const size_t option = std::min(unknown->find("--"), unknown->size());  // a value may stand before it
    const std::string word = unknown->substr(option, unknown->find(' ', option) - option);
    fail(verb, "arguments that it knows", "'" + (word.empty() ? *unknown : word) + "'",
         remedy_for_word(app, word.empty() ? *unknown : word));
  }
  if (const auto name = between(text, "Could not convert: ", " = ")) {
    const std::string value = between(text, " = ", "").value_or("");
    const double limit = std::numeric_limits<double>::max();
    const std::string whole = base::nearest_number(value, -limit, limit, "", true);
    fail(*name, whole.empty() ? "a number" : "a whole number", "'" + value + "'", whole);
  }
  if (const auto times = between(text, "At Most 1 required but received ", ""))
    fail(text.substr(0, text.find(':')), "one value", *times, "one of them");
  if (text.ends_with(" is required")) fail(verb, text.substr(0, text.rfind(" is required")), "none", "");
  throw base::InputError(base::expectation(verb, "arguments that it knows", text, help));
}

CLI::Validator number_from(double minimum, double maximum, const std::string& wanted) {
  return CLI::Validator(
      [minimum, maximum, wanted](const std::string& text) {
        double value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && value >= minimum && value <= maximum;
        if (fits) return std::string();
        const std::string near = base::nearest_number(text, minimum, maximum);
        return fmt::format("expected {}, got {}{}", wanted, text, near.empty() ? "" : "; try " + near);
      },
      wanted);
}

// The function that parse() passes its app to while see_app() is at work; else null.
const std::function<void(const CLI::App&)>* seer = nullptr;

}  // namespace

void name_choices(CLI::Option& option, const std::vector<std::string>& choices) {
  option.type_name(fmt::format("{}", fmt::join(choices, std::string(1, kOr))));
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string names = type.substr(0, type.find(':'));  // checks of CLI11 stand behind a colon
  if (names.find(kOr) == std::string::npos) return {};
  return CLI::detail::split(names, kOr);
}

void see_app(const Verb& verb, const std::function<void(const CLI::App&)>& see) {
  const struct Forget {
    ~Forget() { seer = nullptr; }
  } at_the_end;
  seer = &see;
  verb.run({});
}

namespace {

bool is_pair(const std::string& word) { return !word.starts_with('-') && word.find('=') != std::string::npos; }

// Rewrites `--set a=b c=d CONFIG` as `--set a=b --set c=d CONFIG`, and lets options that may repeat take one value
// each, so that a config may stand behind them.
Arguments one_value_each(CLI::App& app, const Arguments& words) {
  std::set<std::string> repeating;
  for (CLI::Option* option : app.get_options()) {
    if (option->get_multi_option_policy() != CLI::MultiOptionPolicy::TakeAll || option->get_positional()) continue;
    option->allow_extra_args(false);
    for (const std::string& name : option->get_lnames()) repeating.insert("--" + name);
  }
  Arguments made;
  std::string name;  // of the option that further pairs belong to; "" for none
  for (size_t i = 0; i < words.size(); ++i) {
    if (!name.empty() && is_pair(words[i]))
      made.push_back(name);
    else
      name.clear();
    made.push_back(words[i]);
    const std::string own = words[i].substr(0, words[i].find('='));
    if (!repeating.contains(own)) continue;
    if (own == words[i] && i + 1 < words.size()) made.push_back(words[++i]);
    if (is_pair(words[i]) || words[i].starts_with(own + "=")) name = own;
  }
  return made;
}

}  // namespace

bool parse(CLI::App& app, const Arguments& arguments) {
  if (seer != nullptr) {
    (*seer)(app);
    return false;
  }
  Arguments reversed = one_value_each(app, arguments);
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return false;
  } catch (const CLI::ParseError& error) {
    throw_parse_error(app, error.what());
  }
  return true;
}

CLI::Validator at_least(double minimum) {
  return number_from(minimum, std::numeric_limits<double>::infinity(), fmt::format("{} or more", minimum));
}

CLI::Validator from_to(double minimum, double maximum) {
  return number_from(minimum, maximum, fmt::format("{} to {}", minimum, maximum));
}

void require_folder(const std::string& option, const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder)) return;
  std::filesystem::path there = folder;
  while (!there.empty() && there != there.parent_path() && !std::filesystem::is_directory(there))
    there = there.parent_path();
  throw base::InputError(base::expectation(option, "a file in a directory that exists", "'" + file + "'",
                                           (there / std::filesystem::path(file).filename()).string()));
}

namespace {

bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code ignored;  // set when a file does not exist: such files are compared by path
  return std::filesystem::equivalent(a, b, ignored) ||
         std::filesystem::weakly_canonical(std::filesystem::absolute(a)) ==
             std::filesystem::weakly_canonical(std::filesystem::absolute(b));
}

}  // namespace

void check_outputs(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read) {
  for (size_t i = 0; i < written.size(); ++i) {
    const NamedFile& output = written[i];
    if (output.path.empty()) continue;
    require_folder(output.name, output.path);
    const auto refuse_same = [&](const NamedFile& other, const std::string& expected) {
      if (other.path.empty() || !same_file(output.path, other.path)) return;
      throw base::InputError(
          base::expectation(output.name, expected, fmt::format("'{}', {}", output.path, other.name), "another file"));
    };
    for (const NamedFile& input : read) refuse_same(input, "a file that is not read");
    for (size_t k = 0; k < i; ++k)
      refuse_same({"which " + written[k].name + " writes", written[k].path}, "a file of its own");
  }
}

void print_json(const nlohmann::ordered_json& document) {
  fmt::print("{}\n", document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
  std::fflush(stdout);
}

namespace {

// Returns whether the last character closes the bracket that opens the text. Other texts must not reach yaml-cpp, which
// never returns on a comma behind a list.
bool is_in_brackets(const std::string& text) {
  int depth = 0;
  char quote = 0, before = '[';  // a quote opens only at the beginning of an entry, or behind a quote
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\' && quote == '"') ++i;
      if (c == quote) quote = 0;
    } else if ((c == '"' || c == '\'') && (before == '[' || before == ',' || before == c)) {
      quote = c;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']' && --depth == 0) {
      return i + 1 == text.size();
    }
    if (c != ' ') before = c;
  }
  return false;
}

// Reads a list in JSON or in YAML's flow style, "[a, 'b']". Returns nothing if the text is neither, or if it has only
// one entry, without quotes: that is a text in brackets ("[INST]").
std::optional<base::ConfigNode> flow_list(const std::string& text, const std::string& flag) {
  if (const auto json = nlohmann::json::parse(text, nullptr, false); json.is_array())
    return base::from_json(json, flag);
  if (!text.starts_with('[') || !is_in_brackets(text)) return std::nullopt;
  base::ConfigNode list;
  try {
    list = base::parse_yaml_value(text, flag);
  } catch (const base::InputError&) {
    return std::nullopt;
  }
  if (list.kind != base::ConfigNode::Kind::kList) return std::nullopt;
  if (list.children.size() == 1 && !list.children[0].quoted) return std::nullopt;
  return list;
}

// Reads a flag's value as --set does. An option of texts takes whatever is no list as one literal text.
base::ConfigNode flag_value(const std::string& text, const base::OptionInfo& option, const std::string& flag) {
  if (!option.type.ends_with("a string")) return base::parse_yaml_value(text, flag);
  std::optional<base::ConfigNode> list = option.list ? flow_list(text, flag) : std::nullopt;
  return list ? std::move(*list) : base::from_json(text, flag);
}

// Returns all values that an option of a section may have, as the limits of base::one_of name them; empty for any.
std::vector<std::string> values_of(const base::OptionInfo& option) {
  if (option.type == "true or false") return {"true", "false"};
  std::string rest = between(option.limits, "one of ", "").value_or("");
  std::vector<std::string> values;
  while (const auto value = rest.starts_with('"') ? between(rest, "\"", "\"") : std::nullopt) {
    values.push_back(*value);
    rest.erase(0, value->size() + 2);
    if (rest.starts_with(", ")) rest.erase(0, 2);
  }
  return values;
}

}  // namespace

void add_plugin_option(CLI::App& app) {
  app.add_option_function<std::vector<std::string>>(
         kPluginOption,
         [](const std::vector<std::string>& files) {
           for (const std::string& file : files) recipe::add_plugin(file);
         },
         "a file with parts of your own (.so or .py), as the key plugins of a config names them")
      ->take_all();
}

Arguments after_plugins(const Arguments& words) {
  const std::string with_value = std::string(kPluginOption) + "=";
  size_t next = 0;
  for (; next < words.size(); ++next) {
    if (words[next].starts_with(with_value)) {
      recipe::add_plugin(words[next].substr(with_value.size()));
    } else if (words[next] == kPluginOption) {
      if (++next == words.size())
        throw base::InputError(base::expectation(kPluginOption, "a file", "none", "--plugin libmine.so"));
      recipe::add_plugin(words[next]);
    } else {
      break;
    }
  }
  return {words.begin() + static_cast<std::ptrdiff_t>(next), words.end()};
}

void add_download_flag(CLI::App& app, bool& download) {
  app.add_flag(
      "--download", download,
      "download a model named as on a hub (org/model, org/model@REVISION) that Hugging Face's local cache does "
      "not have");
}

void add_flags(CLI::App& app, base::Section& section) {
  std::vector<base::OptionInfo> options;
  section.describe_section("", options);
  for (const base::OptionInfo& option : options) {
    std::string flag = "--" + option.path;
    std::replace(flag.begin(), flag.end(), '_', '-');
    const auto read = [&section, flag, option](const std::string& text) {
      base::ConfigNode given{.kind = base::ConfigNode::Kind::kMap, .where = flag};
      given.child(option.path) = flag_value(text, option, flag);
      base::apply(given, "", section);
    };
    const std::string limits = option.limits.empty() ? "" : option.limits + "; ";
    CLI::Option* added = app.add_option_function<std::string>(
        flag, read, fmt::format("{} ({}default {})", option.help, limits, option.default_value));
    if (const std::vector<std::string> values = values_of(option); !values.empty()) name_choices(*added, values);
  }
}

}  // namespace collimate::cli
