#pragma once

#include <string>
#include <vector>

#include "collimate/base/config_node.h"
#include "collimate/base/section.h"

namespace collimate::base {

// Parses one YAML document into a tree of nodes that know "file:line". An empty document gives a null node. Throws
// InputError for a syntax error, a key written twice, a key that is not a scalar, a second document, or a tree of over
// a million nodes (an alias counts each time it is used). With `last_wins` a key may be written twice, and its last
// value counts.
ConfigNode parse_yaml(const std::string& text, const std::string& file_name, bool last_wins = false);

// Parses a value given on the command line. All errors about the value name `where`.
ConfigNode parse_yaml_value(const std::string& text, const std::string& where);

// Replaces ${NAME} and ${NAME:default} in all scalars; "$${" becomes "${". A scalar that consists of a single ${...}
// gets the type of the value it stands for, quoted or not. Throws InputError naming the line for an unset variable
// without a default and for a "${" that is not closed.
void expand_environment(ConfigNode& node);

// Merges `from` into `into`: maps key by key, anything else as a whole. Where both have a value, `from` wins.
void merge(ConfigNode& into, ConfigNode&& from);

// Puts `sets` into a tree of another origin and expands the environment, as load_config does with the tree that it
// reads. The arguments are those of load_config.
void override_values(ConfigNode& root, const std::vector<std::string>& sets, const Section* schema);

}  // namespace collimate::base
