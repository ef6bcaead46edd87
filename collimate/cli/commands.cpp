#include "collimate/cli/commands.h"

#include <algorithm>

#include "collimate/cli/arguments.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/list.h"

namespace collimate::cli {
namespace {

void add_option(Command& command, const CLI::Option& option) {
  std::string help = option.get_description();
  std::replace(help.begin(), help.end(), '\n', ' ');
  if (option.get_positional())
    command.arguments.push_back({option.get_name(true), help, true, option.get_required()});
  else
    for (const std::string& name : option.get_lnames())
      if (name != "help")
        command.options.push_back({"--" + name, help, option.get_items_expected_max() != 0, false, choices_of(option)});
}

Command command_of(const Verb& verb, const std::string& before) {
  Command command{.words = before + verb.name, .summary = verb.summary};
  see_app(verb, [&](const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) add_option(command, *option);
  });
  const auto is_set = [](const CommandOption& option) { return option.name == "--set"; };
  const auto is_config = [](const CommandOption& argument) { return argument.name == "CONFIG"; };
  command.sets_keys = verb.run != pipeline && std::any_of(command.options.begin(), command.options.end(), is_set) &&
                      std::any_of(command.arguments.begin(), command.arguments.end(), is_config);
  return command;
}

// Replaces "<name>" in a path by "policy", a model that every recipe has, so that the path can be used as it is.
std::string with_a_name(std::string path) {
  const std::string any = "<name>";
  if (const size_t at = path.find(any); at != std::string::npos) path.replace(at, any.size(), "policy");
  return path;
}

Command help_command(const Verb& verb) {
  Command command{.words = verb.name, .summary = verb.summary};
  for (const std::string& topic : help_topics()) command.choices.push_back(with_a_name(topic));
  for (const Verb& other : verbs()) command.choices.emplace_back(other.name);
  command.arguments.push_back({"TOPIC", "a verb, a page, a list or a config key"});
  return command;
}

void add_bench(std::vector<Command>& all, const Verb& verb) {
  Command command{.words = verb.name, .summary = verb.summary};
  for (const Verb& one : benches()) command.choices.emplace_back(one.name);
  command.arguments.push_back({"NAME", "which one", true, true});
  all.push_back(std::move(command));
  for (const Verb& one : benches()) all.push_back(command_of(one, std::string(verb.name) + " "));
}

}  // namespace

std::vector<Command> commands() {
  std::vector<Command> all;
  for (const Verb& verb : verbs()) {
    if (verb.run == bench) {
      add_bench(all, verb);
    } else if (verb.run == help) {
      all.push_back(help_command(verb));
    } else {
      all.push_back(command_of(verb, ""));
      if (verb.run == init) all.back().choices = recipe::recipe_names();
      if (verb.run == completion) all.back().choices = completion_kinds();
    }
  }
  return all;
}

std::vector<std::string> config_keys() {
  std::vector<base::OptionInfo> options;
  recipe::Config().describe_section("", options);
  std::vector<std::string> keys;
  for (const base::OptionInfo& option : options) keys.push_back(with_a_name(option.path));
  return keys;
}

}  // namespace collimate::cli
