#include "collimate/base/unknown_keys.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"

namespace collimate::base {
namespace {

using Kind = ConfigNode::Kind;

constexpr size_t kKeysListed = 12;
constexpr size_t kPlacesNamed = 2;

// A KeyTree holds the keys of a section in declaration order and the tree below each; "<name>" stands for any name.
struct KeyTree {
  std::vector<std::string> names;
  std::map<std::string, KeyTree> under;

  KeyTree& child(const std::string& name) {
    if (!under.contains(name)) names.push_back(name);
    return under[name];
  }
  const KeyTree* find(const std::string& name) const {
    for (const std::string& known : {name, std::string("<name>")})
      if (const auto found = under.find(known); found != under.end()) return &found->second;
    return nullptr;
  }
};

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::string quoted(const std::string& key) { return key.empty() ? "" : fmt::format("\"{}\"", key); }

class UnknownKeys {
 public:
  UnknownKeys(const std::string& path, const Section& section) : section_(section) {
    std::vector<OptionInfo> options;
    section.describe_section(path, options);
    for (const OptionInfo& option : options) {
      paths_.push_back(option.path);
      KeyTree* node = &tree_;
      const std::string below = option.path.substr(path.empty() ? 0 : path.size() + 1);
      for (const std::string& part : split_path(below)) node = &node->child(part);
    }
  }

  std::vector<std::string> of(const ConfigNode& part, const std::string& path) {
    if (path.empty()) whole_ = &part;
    look_at(part, tree_, path);
    return std::move(found_);
  }

 private:
  void look_at(const ConfigNode& node, const KeyTree& known, const std::string& path) {
    for (size_t i = 0; i < node.keys.size() && !known.names.empty(); ++i) {
      if (const KeyTree* here = known.find(node.keys[i]))
        look_at(node.children[i], *here, join_path(path, node.keys[i]));
      else
        report(node.keys[i], node.children[i], known, path);
    }
  }

  // Reports an unknown key. A section inside which the remedies know some names is reported by these names instead of
  // its own. A misspelt section is searched as the section that it was meant to be.
  void report(const std::string& key, const ConfigNode& node, const KeyTree& known, const std::string& path) {
    from_command_ = node.where.starts_with("--set ");
    if (knows_inside(key, node)) return report_inside(key, key, node, path);
    add(node, path, key, remedy(key, known));
    if (!other_name(key).empty() || !same_elsewhere(key).empty()) return;  // it is no misspelling
    const std::string near = nearest(key, known.names);
    if (!near.empty()) look_at(node, *known.find(near), join_path(path, near));
  }

  bool knows_inside(const std::string& key, const ConfigNode& node) const {
    for (size_t i = 0; i < node.keys.size(); ++i) {
      const std::string name = key + "." + node.keys[i];
      if (!section_.section_remedy(name).text.empty() || knows_inside(name, node.children[i])) return true;
    }
    return false;
  }

  // `outer` is the unknown section's own name. Its remedy is used where nothing else is known.
  void report_inside(const std::string& outer, const std::string& name, const ConfigNode& node,
                     const std::string& path) {
    if (!node.keys.empty() && (section_.section_remedy(name).text.empty() || knows_inside(name, node))) {
      for (size_t i = 0; i < node.keys.size(); ++i)
        report_inside(outer, name + "." + node.keys[i], node.children[i], path);
      return;
    }
    std::string text = other_name(name);
    if (text.empty()) text = same_elsewhere(last_part(name));
    add(node, path, name, text.empty() ? other_name(outer) : text);
  }

  void add(const ConfigNode& node, const std::string& path, const std::string& key, const std::string& text) {
    found_.push_back(expectation(node.where, "a key of " + section_title(path), quoted(key), text));
  }

  // Returns what the section says of another program's name. When the config already has the counterpart, it advises to
  // leave the name out, unless the command line says the name, which replaces what the config has.
  std::string other_name(const std::string& key) const {
    const KeyRemedy known = section_.section_remedy(key);
    const ConfigNode* node = known.key.empty() ? nullptr : whole_;
    for (const std::string& part : split_path(known.key)) node = node == nullptr ? nullptr : node->find(part);
    return node == nullptr || from_command_ ? known.text : "leaving it out, as the config has " + known.text;
  }

  std::string remedy(const std::string& key, const KeyTree& known) const {
    for (const std::string& text :
         {other_name(key), same_elsewhere(key), quoted(nearest(key, known.names)), nearest_elsewhere(key)})
      if (!text.empty()) return text;
    const size_t listed = std::min(known.names.size(), kKeysListed);
    return fmt::format("one of {}{}", fmt::join(known.names.begin(), known.names.begin() + listed, ", "),
                       listed < known.names.size() ? ", ..." : "");
  }

  std::string same_elsewhere(const std::string& key) const {
    std::vector<std::string> same;
    for (const std::string& path : paths_)
      if (last_part(path) == key && same.size() < kPlacesNamed) same.push_back(quoted(path));
    return fmt::format("{}", fmt::join(same, " or "));
  }

  // A short key is no evidence, because every other short key is near it.
  std::string nearest_elsewhere(const std::string& key) const {
    constexpr size_t kLongEnough = 6;
    if (key.size() < kLongEnough) return "";
    std::vector<std::string> names;
    std::transform(paths_.begin(), paths_.end(), std::back_inserter(names), last_part);
    const std::string near = nearest(key, names);
    return near.empty() ? "" : same_elsewhere(near);
  }

  const Section& section_;
  const ConfigNode* whole_ = nullptr;  // set when a whole config is looked at
  bool from_command_ = false;          // the key that is reported stands in a --set
  std::vector<std::string> paths_;
  KeyTree tree_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> unknown_keys(const ConfigNode& part, const std::string& path, const Section& section) {
  return UnknownKeys(path, section).of(part, path);
}

}  // namespace collimate::base
