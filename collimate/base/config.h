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

// A configuration read, with includes, ${ENV} and overrides resolved, not yet matched against the declared options.
struct ConfigSource {
  ConfigNode root;
};

// Reads YAML. `include: file.yaml` (or a list), relative to the file that says it, is merged first: maps key by key,
// all else replaced, later keys win. `${NAME}` and `${NAME:default}` in scalars are environment variables; "$${" is a
// plain "${". Between { } or [ ] YAML wants quotes around them; "${NAME:0.3}" is a number all the same. `sets` are
// "a.b=value" with a YAML value; a number in the path indexes a list, and 0 reaches what stands alone where `schema`
// (null: not known) declares a list. Throws InputError naming file:line.
ConfigSource load_config(const std::filesystem::path& path, const std::vector<std::string>& sets = {},
                         const Section* schema = nullptr);
ConfigSource parse_config(const std::string& text, const std::string& file_name,
                          const std::vector<std::string>& sets = {}, const Section* schema = nullptr);

// Reads every key into `root` and runs the checks. Throws InputError for unknown keys, all of them
// (base/unknown_keys.h), a wrong type or a failed check, each with its line. `root` is unspecified after a throw.
void apply(const ConfigSource& source, Section& root);
// Reads a part of a config, which stands at `path` ("reward.0"), into a section.
void apply(const ConfigNode& part, const std::string& path, Section& section);
// Reads a free-form subtree, e.g. one entry of `reward:`; errors name `where` (see Option::where).
void apply(const nlohmann::json& tree, const std::string& where, Section& section);

// All options as YAML in declaration order; read again it gives the same values.
std::string resolved_config(const Section& root);
// Hash of the resolved configuration less the options marked `outside_hash()`: 16 hex digits, the same on all machines.
std::string config_hash(const Section& root);

// Help for a terminal; `prefix` keeps the options at or below that path ("train" or "train.learning_rate"), in which
// any name may stand for <name> ("models.policy.path").
std::string config_help(const Section& root, const std::string& prefix = "");
// The reference page: a Markdown table per section.
std::string config_reference(const Section& root, const std::string& title = "Configuration");

}  // namespace collimate::base
