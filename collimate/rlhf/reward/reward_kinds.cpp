#include "collimate/rlhf/reward/reward_kinds.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/functions.h"
#include "collimate/rlhf/reward/gym_reward.h"
#include "collimate/rlhf/reward/http_reward.h"
#include "collimate/rlhf/reward/judge_reward.h"
#include "collimate/rlhf/reward/python_process.h"
#include "collimate/rlhf/reward/python_reward.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

using base::ConfigNode;
using base::expectation;
using base::InputError;
using nlohmann::json;

json resolved(const ConfigNode& entry, const std::string& path, base::Section& section) {
  base::apply(entry, path, section);
  return base::to_json(section.section_value());
}

template <class Section>
json resolved_by(const ConfigNode& entry, const std::string& path) {
  Section section;
  return resolved(entry, path, section);
}

json resolved_rule(const ConfigNode& entry, const std::string& path) {
  const ConfigNode* rule = entry.find("rule");
  if (rule->kind != ConfigNode::Kind::kScalar)
    throw InputError(expectation(rule->where, path + ".rule to be a name", rule->description()));
  return resolved(entry, path, *find_rule(rule->text, rule->where).section());
}

// Resolves the keys that every function's entry has and leaves the function's own keys as they are.
json resolved_function(const ConfigNode& entry, const std::string& path) {
  FunctionSection section;
  ConfigNode known{ConfigNode::Kind::kMap, "", false, entry.where};
  for (const base::ConfigItem* item : section.section_items())
    if (const ConfigNode* value = entry.find(item->item_name())) known.child(item->item_name()) = *value;
  json all = base::to_json(entry);
  all.update(resolved(known, path, section));
  return all;
}

// Returns the value of an entry's key that is a name, for a list that was not resolved. Throws InputError.
std::string name_at(const json& entry, const char* key) {
  if (entry.at(key).is_string()) return entry.at(key).get<std::string>();
  throw InputError(expectation(fmt::format("reward.{}", key), "a name", entry.at(key).dump()));
}

using NamedReward = std::pair<std::string, std::unique_ptr<Reward>>;

NamedReward make_rule(const json& entry) {
  const std::string name = name_at(entry, "rule");
  return {name, function_reward(find_rule(name, "reward").make(entry), true)};
}

NamedReward make_function(const json& entry) {
  const std::string name = name_at(entry, "function");
  return {name, registered_reward(name, entry)};
}

NamedReward make_python(const json& entry) {
  const auto section = read_entry<PythonSection>(entry);
  return {python_function(section.python).function, python_reward(section)};
}

NamedReward make_gym(const json& entry) {
  const auto section = read_entry<GymSection>(entry);
  return {python_function(section.gym, "Environment").function, gym_reward(section)};
}

// A RewardKind says how entries of one kind are read. Each kind has a row of all_kinds().
struct RewardKind {
  const char* key;   // by which an entry says that it is of this kind
  const char* form;  // how an entry is written
  const char* summary;
  std::unique_ptr<base::Section> (*section)();  // of no rule in particular
  json (*resolve)(const ConfigNode& entry, const std::string& path);
  NamedReward (*make)(const json& entry);  // with the name that metrics and messages begin with
};

const std::vector<RewardKind>& all_kinds() {
  static const std::vector<RewardKind> kKinds{
      {"rule", "{rule: NAME}", "", section_of<RuleSection>, resolved_rule, make_rule},
      {"function", "{function: NAME}",
       "a function that a C++ program has registered (rlhf::register_reward), with options of its own",
       section_of<FunctionSection>, resolved_function, make_function},
      {"python", "{python: FILE.py:function}",
       "a function score(prompts, completions, **columns) -> list[float | None]; None says that it is not about the "
       "sample and adds nothing",
       section_of<PythonSection>, resolved_by<PythonSection>, make_python},
      {"gym", "{gym: FILE.py:Class}",
       "an environment that answers each turn of the policy: Class(prompt, **columns), whose step(completion) gives "
       "observation, reward and done",
       section_of<GymSection>, resolved_by<GymSection>, make_gym},
      {"http", "{http: URL}",
       "a server of your own that gets lists of prompts, completions and columns and answers {rewards: [number or "
       "null, …]}",
       section_of<HttpSection>, resolved_by<HttpSection>,
       [](const json& entry) { return NamedReward("http", http_reward(read_entry<HttpSection>(entry))); }},
      {"judge", "{judge: URL, model: NAME}",
       "a language model behind a server with OpenAI's interface, which is asked for a score", section_of<JudgeSection>,
       resolved_by<JudgeSection>,
       [](const json& entry) { return NamedReward("judge", judge_reward(read_entry<JudgeSection>(entry))); }}};
  return kKinds;
}

// Returns the entry that an error proposes: for the name of a Python file or an address, which may stand under another
// key, that one's entry, else {rule: exact}. `key`: by which the text was given, "" for none.
std::string proposed_entry(const json& entry, const std::string& key = "") {
  constexpr const char* kUsual = "{rule: exact}";
  if (entry.is_object())
    for (const auto& [name, value] : entry.items())
      if (const std::string proposed = proposed_entry(value, name); proposed != kUsual) return proposed;
  const std::string text = entry.is_string() ? entry.get<std::string>() : "";
  if (text.find(".py") != std::string::npos)
    return fmt::format("{{{}: \"{}\"}}", key.starts_with("env") || key.starts_with("gym") ? "gym" : "python", text);
  if (!text.starts_with("http") || text.find("://") == std::string::npos) return kUsual;
  if (key == "remote_rm_url") return fmt::format("{{http: \"{}\", form: openrlhf}}", text);
  return text.ends_with("/v1") ? fmt::format("{{judge: \"{}\", model: NAME}}", text)
                               : fmt::format("{{http: \"{}\"}}", text);
}

// Returns the kind of an entry, null where no kind or more than one is named.
const RewardKind* find_kind(const json& entry) {
  const auto named = [&](const RewardKind& kind) { return entry.is_object() && entry.contains(kind.key); };
  const auto found = std::ranges::find_if(all_kinds(), named);
  return std::ranges::count_if(all_kinds(), named) == 1 ? &*found : nullptr;
}

const RewardKind& kind_of(const json& entry, const std::string& where) {
  if (const RewardKind* kind = find_kind(entry)) return *kind;
  std::vector<std::string> forms;
  for (const RewardKind& kind : all_kinds()) forms.emplace_back(kind.form);
  const std::string last = forms.back();
  forms.pop_back();
  throw InputError(
      expectation(where, fmt::format("{} or {}", fmt::join(forms, ", "), last), entry.dump(), proposed_entry(entry)));
}

std::vector<std::string> unhashed_keys(const RewardKind& kind) {
  std::vector<std::string> keys;
  const std::unique_ptr<base::Section> section = kind.section();
  for (const base::ConfigItem* item : section->section_items())
    if (!item->item_hashed()) keys.push_back(item->item_name());
  return keys;
}

}  // namespace

std::vector<RewardForm> reward_forms() {
  std::vector<RewardForm> forms;
  for (const RuleEntry& rule : rules())
    forms.push_back({"rule", fmt::format("{{rule: {}}}", rule.name), rule.summary, rule.section()});
  for (const RewardKind& kind : all_kinds())
    if (kind.make != make_rule) forms.push_back({kind.key, kind.form, kind.summary, kind.section()});
  return forms;
}

std::string reward_file(const json& entry) {
  for (const char* key : {"python", "gym"})
    if (entry.contains(key)) return python_function(entry.at(key).get<std::string>()).file;
  return "";
}

bool deterministic_reward(const json& entry) {
  const RewardKind& kind = kind_of(entry, "reward");
  const json value = entry.value("deterministic", json(false));
  if (!value.is_boolean()) throw InputError(expectation("reward.deterministic", "true or false", value.dump()));
  return kind.make == make_rule || value.get<bool>();
}

json resolved_rewards(const ConfigNode& list, const std::string& path) {
  const bool many = list.kind == ConfigNode::Kind::kList;
  json out = json::array();
  for (const ConfigNode* entry : base::list_entries(list))
    out.push_back(kind_of(base::to_json(*entry), entry->where)
                      .resolve(*entry, many ? fmt::format("{}.{}", path, out.size()) : path));
  return out;
}

std::vector<std::string> reward_rights() {
  std::vector<std::string> all;
  for (const RewardKind& kind : all_kinds())
    for (const std::string& key : unhashed_keys(kind))
      if (std::ranges::find(all, key) == all.end()) all.push_back(key);
  return all;
}

json hashed_rewards(const json& list) {
  if (list.is_object()) return hashed_rewards(json::array({list})).at(0);
  json hashed = list;
  for (json& entry : hashed)
    if (const RewardKind* kind = find_kind(entry))
      for (const std::string& key : unhashed_keys(*kind)) entry.erase(key);
  return hashed;
}

RewardSpec make_reward(const json& entry) {
  RewardSpec spec;
  std::tie(spec.name, spec.reward) = kind_of(entry, "reward").make(entry);
  const json weight = entry.value("weight", json(1.0));
  if (!weight.is_number()) throw InputError(expectation("reward.weight", "a number", weight.dump()));
  spec.weight = weight;
  spec.on_error = OnError::parse(entry.value("on_error", json("stop")));
  if (!(std::abs(spec.weight * spec.on_error.value) <= std::numeric_limits<float>::max()))
    throw InputError(expectation("reward.on_error", "a value that times weight is within the range of float",
                                 fmt::format("{} times {}", spec.on_error.value, spec.weight)));
  return spec;
}

}  // namespace collimate::rlhf
