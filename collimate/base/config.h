#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "collimate/base/config_node.h"
#include "collimate/base/option.h"
#include "collimate/base/section.h"
#include "collimate/base/section_map.h"

namespace collimate::base {

// A ConfigSource is a configuration as it was read: includes, ${ENV} and overrides are resolved, but nothing has been
// matched against the declared options yet.
struct ConfigSource {
  ConfigNode root;
};

// Reads YAML. The files named by `include: file.yaml` (or a list), relative to the file that says it, are merged first:
// maps are merged key by key, anything else is replaced, and later keys win. `${NAME}` and `${NAME:default}` in scalars
// are environment variables; "$${" is a plain "${". Inside { } or [ ] YAML requires quotes around them; a quoted
// "${NAME:0.3}" is a number all the same. `sets` are "a.b=value" with a YAML value. A number in the path indexes a
// list; where `schema` (null when it is not known) declares a list, 0 also reaches a single entry that is written
// without a list. Throws InputError naming file:line.
ConfigSource load_config(const std::filesystem::path& path, const std::vector<std::string>& sets = {},
                         const Section* schema = nullptr);
ConfigSource parse_config(const std::string& text, const std::string& file_name,
                          const std::vector<std::string>& sets = {}, const Section* schema = nullptr);

// Reads every key into `root` and runs the checks. Throws InputError for a wrong type, a failed check or unknown keys,
// of which it lists all (base/unknown_keys.h), each with its line. `root` is unspecified after a throw.
void apply(const ConfigSource& source, Section& root);
// Reads the part of a config that stands at `path` ("reward.0") into a section.
void apply(const ConfigNode& part, const std::string& path, Section& section);
// Reads a free-form subtree, e.g. one entry of `reward:`. Errors name `where` (see Option::where).
void apply(const nlohmann::json& tree, const std::string& where, Section& section);

// Returns all options as YAML in declaration order. Reading this text gives the same values.
std::string resolved_config(const Section& root);
// Returns a hash of the resolved configuration without the options marked `outside_hash()`: 16 hex digits, the same on
// all machines.
std::string config_hash(const Section& root);

// Returns help for a terminal. `prefix` keeps only the options at or below that path ("train" or
// "train.learning_rate"); any name in it may stand for <name> ("models.policy.path").
std::string config_help(const Section& root, const std::string& prefix = "");
// Returns the reference page: a Markdown table for each section.
std::string config_reference(const Section& root, const std::string& title = "Configuration");

}  // namespace collimate::base
