#pragma once

#include <string>
#include <vector>

namespace collimate::cli {

// These structs describe the command line as the verbs' own apps declare it. Completion scripts and the man page are
// made from them.
struct CommandOption {
  std::string name;                       // "--set"; an argument has no dashes: "CONFIG"
  std::string help;                       // one line
  bool valued = false;                    // takes a value
  bool required = false;                  // set for arguments only
  std::vector<std::string> choices = {};  // all values that it may have; empty: any, and files are offered
};
struct Command {
  std::string words;                              // "train", "bench quickstart"
  std::string summary;                            // one line
  std::vector<CommandOption> arguments, options;  // without --help, which all have
  std::vector<std::string> choices;               // the values that the first argument may have; empty: files
  bool sets_keys = false;                         // --set takes keys of a run's config
};

// Returns all commands, in the order of help. A command with parts ("bench") lists them as choices, and the parts
// follow it as commands.
std::vector<Command> commands();

// Returns the paths of all config keys; keys of a model are given for the model "policy".
std::vector<std::string> config_keys();

// Returns the kinds that `collimate completion` can print: bash, zsh, fish, man.
std::vector<std::string> completion_kinds();

// Return a whole completion script, or the whole man page.
std::string bash_completion(const std::vector<Command>& commands);
std::string zsh_completion(const std::vector<Command>& commands);
std::string fish_completion(const std::vector<Command>& commands);
std::string man_page(const std::vector<Command>& commands);

}  // namespace collimate::cli
