#pragma once

#include <string>
#include <vector>

#include "collimate/base/config_node.h"
#include "collimate/base/section.h"

namespace collimate::base {

// One YAML document as a tree of nodes that know "file:line". An empty document is a null node. Throws InputError for a
// syntax error, a key written twice, a key that is not a scalar, a second document, or a tree of over a million nodes
// (aliases multiply). `last_wins`: of a key that is written twice the last value counts.
ConfigNode parse_yaml(const std::string& text, const std::string& file_name, bool last_wins = false);

// A value given on the command line; every node of it has this `where`.
ConfigNode parse_yaml_value(const std::string& text, const std::string& where);

// Replaces ${NAME} and ${NAME:default} in all scalars. Throws InputError naming the line for an unset variable without
// a default and for a "${" that is not closed. "$${" becomes "${". A scalar that is one ${...} and no more has the type
// of what it stands for, quoted or not.
void expand_environment(ConfigNode& node);

// Puts one tree into another, of which it wins: maps key by key, anything else as a whole.
void merge(ConfigNode& into, ConfigNode&& from);

// Puts `sets` into a tree and expands the environment, as load_config does with the tree that it reads. This is for a
// tree of another origin; the arguments are those of load_config.
void override_values(ConfigNode& root, const std::vector<std::string>& sets, const Section* schema);

}  // namespace collimate::base
