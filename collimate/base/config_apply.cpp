#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/base/config_errors.h"
#include "collimate/base/config_text.h"
#include "collimate/base/philox.h"

namespace collimate::base {
namespace {

constexpr size_t kKeysListed = 12;

// Names the same key elsewhere, else the section's keys, when no key of the section is like the wrong one.
std::string remedy_elsewhere(const Section& root, const std::string& path, const UnknownKeyError& error) {
  std::vector<OptionInfo> options;
  root.describe_section(path, options);
  std::string siblings;
  size_t listed = 0;
  for (const auto& option : options) {
    const size_t dot = option.path.rfind('.');
    const std::string leaf = option.path.substr(dot + 1);
    if (leaf == error.key()) return fmt::format("\"{}\"", option.path);
    const std::string parent = dot == std::string::npos ? "" : option.path.substr(0, dot);
    if (parent == error.section() && ++listed <= kKeysListed) siblings += (listed > 1 ? ", " : "") + leaf;
  }
  if (listed > kKeysListed) siblings += ", ...";
  return siblings.empty() ? "" : "one of " + siblings;
}

}  // namespace

void apply(const ConfigNode& part, const std::string& path, Section& section) {
  try {
    section.read_section(part, path);
  } catch (const UnknownKeyError& error) {
    const std::string known = section.section_remedy(error.key());
    if (known.empty() && !error.near().empty()) throw;
    throw InputError(expectation(error.where(), "a key of " + section_title(error.section()),
                                 fmt::format("\"{}\"", error.key()),
                                 known.empty() ? remedy_elsewhere(section, path, error) : known));
  }
  section.check_section(path);
}

void apply(const ConfigSource& source, Section& root) { apply(source.root, "", root); }

void apply(const nlohmann::json& tree, const std::string& where, Section& section) {
  apply(from_json(tree, where), "", section);
}

std::string resolved_config(const Section& root) { return block_yaml(root.section_value()); }

std::string config_hash(const Section& root) {
  return fmt::format("{:016x}", stable_hash(block_yaml(root.section_value(true))));
}

}  // namespace collimate::base
