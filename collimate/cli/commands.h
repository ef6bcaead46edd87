#pragma once

#include <string>
#include <vector>

namespace collimate::cli {

// The command line as data, from the verbs' own apps: completion scripts and the man page are made of it.
struct CommandOption {
  std::string name;       // "--set"; of an argument without dashes "CONFIG"
  std::string help;       // one line
  bool valued = false;    // takes a value
  bool required = false;  // of an argument
};
struct Command {
  std::string words;                              // "train", "bench quickstart"
  std::string summary;                            // one line
  std::vector<CommandOption> arguments, options;  // without --help, which all have
  std::vector<std::string> choices;  // what the first argument may be, where a list says it; files elsewhere
  bool sets_keys = false;            // --set takes config keys
};

// All commands, in the order of help. One with parts ("bench") has them as choices and they follow it.
std::vector<Command> commands();

// Paths of all config keys, those of models as of the policy.
std::vector<std::string> config_keys();

// These are the kinds that `collimate completion` may be asked for: bash, zsh, fish, man.
std::vector<std::string> completion_kinds();

// Scripts and the page, whole.
std::string bash_completion(const std::vector<Command>& commands);
std::string zsh_completion(const std::vector<Command>& commands);
std::string fish_completion(const std::vector<Command>& commands);
std::string man_page(const std::vector<Command>& commands);

}  // namespace collimate::cli
