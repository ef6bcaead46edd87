#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/base/config_text.h"
#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/base/unknown_keys.h"

namespace collimate::base {

void apply(const ConfigNode& part, const std::string& path, Section& section) {
  const std::vector<std::string> unknown = unknown_keys(part, path, section);
  if (!unknown.empty()) throw InputError(fmt::format("{}", fmt::join(unknown, "\n")));
  section.read_section(part, path);
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
