#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "collimate/base/at.h"
#include "collimate/base/config.h"
#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/cli/help_pages.h"
#include "collimate/cli/verbs.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/other_names.h"
#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> list = {
      {"init", "write a config of a recipe to begin with", init},
      {"train", "train what CONFIG.yaml says", train},
      {"check", "show the resolved config, batch arithmetic and data, and what is wrong with them", check},
      {"generate", "complete prompts with a model", generate},
      {"eval", "measure models on data: pass@k and kin, perplexity, pairs, multiple choice", eval},
      {"chat", "talk with a model, or with two side by side", chat},
      {"serve", "answer OpenAI's interface over HTTP", serve},
      {"report", "write the HTML page of a run", report},
      {"plan", "find placement, layouts and memory for a cluster before a run starts", plan},
      {"simulate", "period, timeline and memory of a placement file, without running it", simulate},
      {"calibrate", "fit the planner's constants to this machine by short runs of a config", calibrate},
      {"bench", "quickstart and other measured runs", bench},
      {"worker", "join a run as a worker", worker},
      {"completion", "print a shell's completion script or the man page: bash, zsh, fish, man", completion},
      {"version", "print the versions: collimate, torch, compiler, processor", version},
      {"help", "this text; help TOPIC: a verb, a recipe, data, lora, resume, a config key and more", help}};
  return list;
}

namespace {

constexpr const char* kTopics =
    "\ncollimate help VERB or VERB --help lists a verb's options; collimate help RECIPE, data, lora or resume is a "
    "page\n"
    "with an example; collimate help KEY explains a config key or section,\n"
    "collimate help reference prints all keys as a Markdown page, collimate help recipes, losses, advantages\n"
    "or rewards those that a config may name.\n"
    "COLLIMATE_ISA=avx2, avx512, avx512_bf16 or amx in the environment chooses the instructions; the bits stay.\n";

void print_verbs() {
  fmt::print("collimate VERB …\n\n");
  for (const Verb& verb : verbs()) fmt::print("  {:10} {}\n", verb.name, verb.summary);
  fmt::print("{}", kTopics);
}

// A kind of entry of `reward:`.
struct RewardKind {
  std::string entry, summary;
  std::unique_ptr<base::Section> section;
};

std::vector<RewardKind> reward_kinds() {
  std::vector<RewardKind> kinds;
  for (const rlhf::RuleEntry& rule : rlhf::rules())
    kinds.push_back({fmt::format("{{rule: {}}}", rule.name), rule.summary, rule.section()});
  kinds.push_back({"{function: NAME}", "registered by a C++ program (rlhf::register_reward); beside options of its own",
                   rlhf::section_of<rlhf::FunctionSection>()});
  kinds.push_back({"{python: FILE.py:function}",
                   "score(prompts, completions, **columns) -> list[float | None]; None: it is not about the sample and "
                   "adds nothing",
                   rlhf::section_of<rlhf::PythonSection>()});
  return kinds;
}

// The keys of a section that are not among the first `skipped` ones, and not those that say of what kind the entry is.
void print_keys(const base::Section& section, size_t skipped) {
  std::vector<base::OptionInfo> keys;
  section.describe_section("", keys);
  for (size_t i = skipped; i < keys.size(); ++i) {
    const base::OptionInfo& key = keys[i];
    if (key.path == "rule" || key.path == "function" || key.path == "python") continue;
    const std::string limits = key.limits.empty() ? "" : fmt::format(" ({})", key.limits);
    fmt::print("    {} ({}{}{}) {}{}\n", key.path, key.default_value, key.unit.empty() ? "" : " ", key.unit, key.help,
               limits);
  }
}

void print_rewards() {
  const rlhf::RewardSection all;
  fmt::print("reward: a list of\n");
  for (const RewardKind& kind : reward_kinds()) {
    fmt::print("  {:26} {}\n", kind.entry, kind.summary);
    print_keys(*kind.section, all.section_items().size());
  }
  fmt::print("each with\n");
  print_keys(all, 0);
}

void print_reference() {
  fmt::print("{}", base::config_reference(recipe::Config()));
  for (const RewardKind& kind : reward_kinds())
    fmt::print("\n{}", base::config_reference(*kind.section, fmt::format("Entry of reward: `{}`", kind.entry)));
}

void print_recipes() {
  for (const recipe::RecipeEntry& entry : recipe::recipes()) fmt::print("{:8} {}\n", entry.name, entry.summary);
}

// Does a recipe train by losses on such rows?
bool read_by_a_recipe(const std::string& rows) {
  const auto reads = [&](const recipe::RecipeEntry& entry) {
    return std::find(entry.loss_rows.begin(), entry.loss_rows.end(), rows) != entry.loss_rows.end();
  };
  return std::any_of(recipe::recipes().begin(), recipe::recipes().end(), reads);
}

void print_losses() {
  std::string rows;
  for (const rlhf::LossEntry& entry : rlhf::losses()) {
    const std::string as = fmt::format(" (as functions of the library; no recipe reads {} rows)", entry.rows);
    if (entry.rows != rows) fmt::print("on {}{}\n", entry.rows, read_by_a_recipe(entry.rows) ? "" : as);
    rows = entry.rows;
    for (const std::string& type : entry.types) fmt::print("  {:18} {}\n", type, fmt::join(entry.options(type), " "));
  }
}

void print_other_names() { fmt::print("{}", recipe::other_names_table()); }

void print_advantages() {
  for (const rlhf::AdvantageEntry& entry : rlhf::advantages()) fmt::print("from {}: {}\n", entry.rows, entry.name);
}

// Gives what the word was meant to be, or "": a verb, or a key by its path or by the last part of it ("epsilon_hi").
std::string nearest_topic(const std::string& word) {
  std::vector<std::string> topics = help_topics(), leaves;
  for (const Verb& verb : verbs()) topics.emplace_back(verb.name);
  std::vector<base::OptionInfo> options;
  recipe::Config().describe_section("", options);
  for (const base::OptionInfo& option : options) leaves.push_back(option.path.substr(option.path.rfind('.') + 1));
  if (const std::string near = base::nearest(word, topics); !near.empty()) return near;
  const auto leaf = std::find(leaves.begin(), leaves.end(), base::nearest(word.substr(word.rfind('.') + 1), leaves));
  return leaf == leaves.end() ? "" : base::at(options, leaf - leaves.begin()).path;
}

[[noreturn]] void throw_unknown_topic(const std::string& word) {
  const std::string near = nearest_topic(word);
  throw base::InputError(
      base::expectation("collimate help",
                        "a verb, a recipe, data, lora, resume, a config key, reference, recipes, losses, "
                        "advantages or rewards",
                        "\"" + word + "\"", "collimate help" + (near.empty() ? "" : " " + near)));
}

}  // namespace

std::vector<std::string> help_topics() {
  std::vector<std::string> topics = help_pages();
  topics.insert(topics.end(), {"reference", "recipes", "losses", "advantages", "rewards", "other-names"});
  std::vector<base::OptionInfo> options;
  recipe::Config().describe_section("", options);
  for (const base::OptionInfo& option : options) topics.push_back(option.path);
  return topics;
}

int help(const Arguments& arguments) {
  const std::string topic = arguments.empty() ? "" : arguments[0];
  if (topic.empty() || topic == "--help" || topic == "-h") {
    print_verbs();
    return 0;
  }
  if (topic == "reference" || topic == "--reference") {
    print_reference();
    return 0;
  }
  const std::map<std::string, void (*)()> lists = {{"recipes", print_recipes},
                                                   {"losses", print_losses},
                                                   {"advantages", print_advantages},
                                                   {"rewards", print_rewards},
                                                   {"other-names", print_other_names}};
  if (const auto list = lists.find(topic); list != lists.end()) {
    list->second();
    return 0;
  }
  const std::string text = base::config_help(recipe::Config(), topic);
  if (const std::string page = help_page(topic); !page.empty()) {
    fmt::print("{}", page);
    if (!text.empty()) fmt::print("\nConfig keys of section {}:\n{}", topic, text);
    return 0;
  }
  const auto verb = std::find_if(verbs().begin(), verbs().end(), [&](const Verb& v) { return topic == v.name; });
  if (verb != verbs().end()) {
    const int code = verb->run({"--help"});
    if (!text.empty()) fmt::print("\nConfig keys of section {}:\n{}", topic, text);
    return code;
  }
  if (text.empty()) throw_unknown_topic(topic);
  fmt::print("{}", text);
  return 0;
}

}  // namespace collimate::cli
