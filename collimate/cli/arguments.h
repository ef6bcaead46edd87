#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "collimate/base/section.h"
#include "collimate/cli/verbs.h"

namespace collimate::cli {

// Names the values that an option may have, all of them, in its help ("auto|none") and to completion scripts.
void name_choices(CLI::Option& option, const std::vector<std::string>& choices);
// Returns the values that name_choices() has given, empty for none.
std::vector<std::string> choices_of(const CLI::Option& option);

// Parses a verb's arguments. Returns false when the verb must not run: help was asked for and printed, or see_app() is
// at work. Throws InputError for anything wrong, which names the verb or the option, and the nearest valid option or
// number.
bool parse(CLI::App& app, const Arguments& arguments);

// Calls the verb as far as its parse(), which passes the app with all its options to `see` instead of parsing.
void see_app(const Verb& verb, const std::function<void(const CLI::App&)>& see);

// Return checks for add_option(…)->check(): the number is at least `minimum`, or lies in [minimum, maximum].
CLI::Validator at_least(double minimum);
CLI::Validator from_to(double minimum, double maximum);

// Throws InputError when the directory of `file`, which `option` names as a file to write, does not exist. The error
// suggests the nearest directory above it that exists.
void require_folder(const std::string& option, const std::string& file);

// A NamedFile is a file that a verb was given: the option that names it, or its role ("the config"), and its path, ""
// for none.
struct NamedFile {
  std::string name, path;
};
// Checks each file to write as require_folder does. Also throws InputError when a file to write is also read or is
// written twice, even if the two paths differ by links or dots.
void check_outputs(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read);

// Prints the one JSON document of a verb that was called with --json to stdout. Broken UTF-8 is replaced.
void print_json(const nlohmann::ordered_json& document);

// Adds --download, the flag of every verb that takes models.
void add_download_flag(CLI::App& app, bool& download);

// Adds --plugin, the option of every verb that reads a config. Once the app has parsed, its files are plugins of every
// config of the process.
void add_plugin_option(CLI::App& app);
// Adds the files of the leading words --plugin FILE or --plugin=FILE, which may stand before any verb, as plugins, and
// returns the remaining words. Throws InputError for a --plugin without a file.
Arguments after_plugins(const Arguments& words);

// Adds a flag for each option of a section, "--top-p" for top_p. A value is YAML like that of --set and passes the
// option's own checks while the app parses. An option that takes a text takes the value literally; one that also takes
// lists reads "[a, b]" and "['a']" as lists and "[INST]" as a text.
void add_flags(CLI::App& app, base::Section& section);

}  // namespace collimate::cli
