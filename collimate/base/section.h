#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/config_node.h"

namespace collimate::base {

// A KeyRemedy says what to write in the place of a key that no section has.
struct KeyRemedy {
  std::string key;   // path of the key with this meaning, "" where there is none
  std::string text;  // for an error; "" where nothing is known of the name
};

class Section;

// This trait marks an option that nothing reads unless another option of its section has a value for which `on` holds.
struct only_with {
  std::string option;                                        // "" for none
  bool (*on)(const nlohmann::json& value) = is_switched_on;  // given the other option's value
  static bool is_switched_on(const nlohmann::json& value);   // neither null, false, 0 nor "off"
};

// An OptionInfo holds what help and the reference page say of one option or section.
struct OptionInfo {
  std::string path;           // "rollout.samples_per_prompt"
  std::string type;           // "section" for a section
  std::string default_value;  // as YAML
  std::string unit;
  std::string help;
  std::string limits;      // texts of its checks, joined
  bool list = false;       // a list; a single entry may be written without the list
  std::string scalar_key;  // of a map of sections: a scalar in the place of a section is the value of this key
  only_with read = {};
};

// A ConfigItem is a member of a Section: an option, a nested section, or a map of sections. The names of its functions
// begin with `item_` so that an option may be called `name` or `value`.
class ConfigItem {
 public:
  ConfigItem(std::string name, std::string help) : name_(std::move(name)), help_(std::move(help)) {}
  virtual ~ConfigItem() = default;

  const std::string& item_name() const { return name_; }
  const std::string& item_help() const { return help_; }

  virtual void item_read(const ConfigNode& node, const std::string& path) = 0;
  virtual void item_check(const std::string& path) const = 0;
  virtual ConfigNode item_value(bool hashed_only) const = 0;
  virtual bool item_hashed() const { return true; }
  virtual void item_describe(const std::string& path, std::vector<OptionInfo>& out) const = 0;

 protected:
  ConfigItem(const ConfigItem&) = default;
  ConfigItem& operator=(const ConfigItem&) { return *this; }  // values are assigned, names stay

 private:
  std::string name_;
  std::string help_;
};

// A Section is a struct whose members are options, in declaration order. It can be copied, as members are found by
// their offset.
//   struct RolloutOptions : base::Section {
//     COLLIMATE_OPTION(int64_t, samples_per_prompt, 8, "samples", "completions per prompt", base::at_least(1));
//   };
//   struct RunOptions : base::Section {
//     base::Nested<RolloutOptions> rollout{this, "rollout", "how completions are made"};
//   };
class Section {
 public:
  Section() = default;
  virtual ~Section() = default;

  void add_item(ConfigItem* item);  // called by the members' constructors
  std::vector<const ConfigItem*> section_items() const;

  // Reads a map whose keys are all known (base::apply refuses others). Options without a key keep their value. `path`
  // is "" for the root.
  void read_section(const ConfigNode& node, const std::string& path);
  // Runs all checks, for values that were assigned from code. Throws InputError naming the option.
  void check_section(const std::string& path = "") const;
  ConfigNode section_value(bool hashed_only = false) const;
  void describe_section(const std::string& path, std::vector<OptionInfo>& out) const;
  // Throws InputError, by Option::item_refuse, where the section's options do not fit together or where one of them
  // must satisfy more than a Check can say. check_section calls it with the section's path after all checks of the
  // options have passed.
  virtual void section_demands(const std::string& /*path*/) const {}
  // Returns what to write for a key that no section has, such as "num_epochs" or "trainer.num_epochs".
  virtual KeyRemedy section_remedy(const std::string& /*key*/) const { return {}; }

 protected:
  Section(const Section&) = default;
  Section& operator=(const Section&) { return *this; }

 private:
  std::vector<std::ptrdiff_t> offsets_;  // of the ConfigItems, relative to this object
};

std::string join_path(const std::string& path, const std::string& name);
std::vector<std::string> split_path(const std::string& path);
// Returns "section train", or "the configuration" for the root.
std::string section_title(const std::string& path);

// A Nested is a section inside a section. It is used as the section itself: `options.rollout.samples_per_prompt`.
template <class S>
class Nested : public S, public ConfigItem {
 public:
  // The parameters have unlikely names, because a parameter named like an option of S would hide the option.
  Nested(Section* item_parent, std::string item_key, std::string item_text)
      : ConfigItem(std::move(item_key), std::move(item_text)) {
    item_parent->add_item(this);
  }
  Nested(const Nested&) = default;
  Nested& operator=(const Nested&) = default;
  Nested& operator=(const S& item_other) {
    S::operator=(item_other);
    return *this;
  }

  void item_read(const ConfigNode& item_node, const std::string& item_path) override {
    this->read_section(item_node, item_path);
  }
  void item_check(const std::string& item_path) const override { this->check_section(item_path); }
  ConfigNode item_value(bool item_hashed_only) const override { return this->section_value(item_hashed_only); }
  void item_describe(const std::string& item_path, std::vector<OptionInfo>& item_out) const override {
    item_out.push_back({item_path, "section", "", "", item_help(), ""});
    this->describe_section(item_path, item_out);
  }
};

}  // namespace collimate::base
