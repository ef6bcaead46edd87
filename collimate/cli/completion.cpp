#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/commands.h"

namespace collimate::cli {
namespace {

struct Kind {
  const char* name;
  std::string (*text)(const std::vector<Command>& commands);
};

constexpr std::array<Kind, 4> kKinds = {
    {{"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}, {"man", man_page}}};

// Returns a help text as a single-quoted word of a shell. Its single quotes become U+2019, and the characters of
// `special`, which have a meaning to the reader of the word, are left out.
std::string quoted(const std::string& text, const std::string& special) {
  std::string word;
  for (const char c : text)
    if (c == '\'')
      word += "\u2019";
    else if (special.find(c) == std::string::npos)
      word += c;
  return "'" + word + "'";
}

std::vector<std::string> option_names(const Command& command, bool valued) {
  std::vector<std::string> names;
  for (const CommandOption& option : command.options)
    if (option.valued == valued) names.push_back(option.name);
  return names;
}

bool has_parts(const Command& command, const std::vector<Command>& all) {
  return std::any_of(all.begin(), all.end(),
                     [&](const Command& other) { return other.words.starts_with(command.words + " "); });
}

// Returns the commands of one word, which are the verbs.
std::vector<Command> verbs_of(std::vector<Command> all) {
  std::erase_if(all, [](const Command& command) { return command.words.find(' ') != std::string::npos; });
  return all;
}

constexpr const char* kBash = R"(# bash completion of collimate, made by `collimate completion bash`.
_collimate_keys="{keys}"
_collimate() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} flags= valued= choices= values= keys= first=2
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "{verbs}" -- "$word"))
    return
  fi
  # "--set=key" is three words.
  if [ "$before" = = ]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  if [ "$word" = = ]; then word=; fi
  case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}} " in
{cases}  esac
  if [ -n "$keys" ] && [ "$before" = --set ]; then
    COMPREPLY=($(compgen -S = -W "$_collimate_keys" -- "$word"))
    compopt -o nospace
  elif [ -n "$values" ]; then
    COMPREPLY=($(compgen -W "$values" -- "$word"))
  elif [[ " $valued " != *" $before "* && "$word" = -* ]]; then
    COMPREPLY=($(compgen -W "$flags $valued --help" -- "$word"))
  elif [ -n "$choices" ] && [ "$COMP_CWORD" = "$first" ]; then
    COMPREPLY=($(compgen -W "$choices" -- "$word"))
  else
    compopt -o filenames
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -F _collimate collimate
)";

// Returns a statement of bash that sets `values` behind an option whose values are known.
std::string bash_values(const Command& command) {
  std::string cases;
  for (const CommandOption& option : command.options)
    if (!option.choices.empty())
      cases += fmt::format(" {}) values=\"{}\" ;;", option.name, fmt::join(option.choices, " "));
  return cases.empty() ? "" : fmt::format("; case \"$before\" in{} esac", cases);
}

constexpr const char* kZsh = R"(#compdef collimate
# zsh completion of collimate, made by `collimate completion zsh`.
_collimate_keys() {{
  local -a keys=({keys})
  compadd -S = -a keys
}}
_collimate() {{
  local -a verbs=(
{verbs}  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  shift words
  (( CURRENT-- ))
  case "$words[1] $words[2] " in
{cases}  esac
}}
if [ "$funcstack[1]" = _collimate ]; then _collimate; else compdef _collimate collimate; fi
)";

std::string zsh_case(const Command& command, const std::vector<Command>& all) {
  const bool part = command.words.find(' ') != std::string::npos;
  std::string text = fmt::format("    '{} '*) ", command.words);
  if (part) text += "shift words; (( CURRENT-- )); ";
  text += "_arguments '--help[its options]'";
  for (const CommandOption& option : command.options) {
    const bool keys = command.sets_keys && option.name == "--set";
    const std::string offered = option.choices.empty() ? "_files" : fmt::format("({})", fmt::join(option.choices, " "));
    const std::string value = !option.valued ? "" : keys ? ":key:_collimate_keys" : ":value:" + offered;
    const char* glued = option.valued ? "=" : "";  // the value may stand behind a "=", or be the next word
    const std::string word = quoted(fmt::format("{}{}[{}", option.name, glued, option.help), "\\]:");
    text += fmt::format(" \\\n      '*'{}']{}'", word, value);
  }
  if (!command.choices.empty()) text += fmt::format(" \\\n      '1:which:({})'", fmt::join(command.choices, " "));
  return text + (has_parts(command, all) ? "" : " \\\n      '*:file:_files'") + " ;;\n";
}

std::string fish_lines(const Command& command, const std::vector<Command>& all) {
  const size_t space = command.words.find(' ');
  std::string seen = "__fish_seen_subcommand_from " + command.words.substr(0, space);
  if (space != std::string::npos) seen += "; and __fish_seen_subcommand_from " + command.words.substr(space + 1);
  const std::string begin = fmt::format("complete -c collimate -n '{}'", seen);
  std::string text;
  for (const CommandOption& option : command.options) {
    const bool keys = command.sets_keys && option.name == "--set";
    const std::string offered = keys ? "(_collimate_keys)" : fmt::format("{}", fmt::join(option.choices, " "));
    const std::string value = !offered.empty() ? fmt::format(" -x -a '{}'", offered) : option.valued ? " -r" : "";
    text += fmt::format("{} -l {}{} -d {}\n", begin, option.name.substr(2), value, quoted(option.help, "\\"));
  }
  if (!command.choices.empty())
    text += fmt::format("{}{} -a '{}'\n", begin, has_parts(command, all) ? " -f" : "", fmt::join(command.choices, " "));
  return text;
}

}  // namespace

std::vector<std::string> completion_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

std::string bash_completion(const std::vector<Command>& all) {
  std::string verbs, cases;
  for (const Command& command : verbs_of(all)) verbs += (verbs.empty() ? "" : " ") + command.words;
  // Commands of more words come first, because a shell takes the first case that matches.
  std::vector<Command> longest = all;
  std::stable_sort(longest.begin(), longest.end(), [](const Command& a, const Command& b) {
    return std::count(a.words.begin(), a.words.end(), ' ') > std::count(b.words.begin(), b.words.end(), ' ');
  });
  for (const Command& command : longest)
    cases += fmt::format("    \"{} \"*) flags=\"{}\" valued=\"{}\" choices=\"{}\"{}{} ;;\n", command.words,
                         fmt::join(option_names(command, false), " "), fmt::join(option_names(command, true), " "),
                         fmt::join(command.choices, " "), command.sets_keys ? " keys=yes" : "", bash_values(command));
  return fmt::format(kBash, fmt::arg("keys", fmt::to_string(fmt::join(config_keys(), " "))), fmt::arg("verbs", verbs),
                     fmt::arg("cases", cases));
}

std::string zsh_completion(const std::vector<Command>& all) {
  std::string verbs, cases;
  for (const Command& command : verbs_of(all))
    verbs += fmt::format("    {}\n", quoted(command.words + ":" + command.summary, "\\"));
  for (const Command& command : all)
    if (command.words.find(' ') != std::string::npos) cases += zsh_case(command, all);
  for (const Command& command : verbs_of(all)) cases += zsh_case(command, all);
  return fmt::format(kZsh, fmt::arg("keys", fmt::to_string(fmt::join(config_keys(), " "))), fmt::arg("verbs", verbs),
                     fmt::arg("cases", cases));
}

std::string fish_completion(const std::vector<Command>& all) {
  std::string text = fmt::format(
      "# fish completion of collimate, made by `collimate completion fish`.\n"
      "function _collimate_keys\n  printf '%s=\\n' {}\nend\n",
      fmt::join(config_keys(), " "));
  for (const Command& command : verbs_of(all))
    text += fmt::format("complete -c collimate -n __fish_use_subcommand -f -a {} -d {}\n", command.words,
                        quoted(command.summary, "\\"));
  for (const Command& command : all) text += fish_lines(command, all);
  return text;
}

int completion(const Arguments& arguments) {
  CLI::App app{"prints the completion script of a shell, or the man page", "completion"};
  std::string kind;
  app.add_option("KIND", kind, "bash, zsh, fish or man")->required();
  if (!parse(app, arguments)) return 0;
  for (const Kind& one : kKinds) {
    if (kind != one.name) continue;
    fmt::print("{}", one.text(commands()));
    return 0;
  }
  throw base::InputError(base::expectation(
      "collimate completion", fmt::format("one of {}", fmt::join(completion_kinds(), ", ")), "\"" + kind + "\""));
}

}  // namespace collimate::cli
