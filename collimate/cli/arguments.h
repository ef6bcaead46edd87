#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "collimate/base/section.h"
#include "collimate/cli/verbs.h"

namespace collimate::cli {

// Parses a verb's arguments. False when help was asked for and printed. InputError for anything wrong: it names the
// verb or the option, and the nearest option or number that is right.
bool parse(CLI::App& app, const Arguments& arguments);

// Calls a verb no further than its parse(), which shows `see` the app with all its options in the place of parsing.
void see_app(const Verb& verb, const std::function<void(const CLI::App&)>& see);

// Checks of numbers, for add_option(…)->check(): at least `minimum`, and at most `maximum`.
CLI::Validator at_least(double minimum);
CLI::Validator from_to(double minimum, double maximum);

// InputError of an option that names a file to write, whose directory is missing; with one that is there.
void require_folder(const std::string& option, const std::string& file);

// A file that a verb is told of: the option that names it, or what it is ("the config"), and its path, "" for none.
struct NamedFile {
  std::string name, path;
};
// Checks all files to write as require_folder does one; InputError, too, for one that is also read, or written twice,
// whatever links or dots its paths have.
void check_outputs(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read);

// The one JSON document of a verb called with --json, on stdout. Broken UTF-8 is replaced.
void print_json(const nlohmann::ordered_json& document);

// --download, wherever a verb takes models.
void add_download_flag(CLI::App& app, bool& download);

// --plugin, where a verb reads a config: its files are plugins of every config of the process once the app has parsed.
void add_plugin_option(CLI::App& app);
// Loads the files of leading words --plugin FILE or --plugin=FILE, which every verb may have ahead of it, and gives the
// other words. InputError for a --plugin without a file.
Arguments after_plugins(const Arguments& words);

// A flag for each option of a section, "--top-p" for top_p, whose value is YAML as that of --set (a text stands as it
// is, where lists are read too "[INST]" but not "[a, b]" or "['a']"), read by the option's own checks while the app
// parses.
void add_flags(CLI::App& app, base::Section& section);

}  // namespace collimate::cli
