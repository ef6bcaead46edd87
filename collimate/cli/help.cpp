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
#include "collimate/plan/show/columns.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/other_names.h"
#include "collimate/recipe/pipeline.h"
#include "collimate/recipe/preset.h"
#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/reward/reward_kinds.h"
#include "collimate/rlhf/reward/reward_section.h"

namespace collimate::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> list = {
      {"init", "write a commented config to begin with", init},
      {"train", "train a model as a config says", train},
      {"pipeline", "train by SFT, a reward model and PPO, one after the other", pipeline},
      {"check", "read config, model and data, show what would be trained, and what is wrong", check},
      {"generate", "complete prompts with a model", generate},
      {"eval", "measure models on data: pass@k and the like, perplexity, pairs, multiple choice", eval},
      {"chat", "talk with a model, or with two side by side", chat},
      {"serve", "serve a model over HTTP, with OpenAI's interface", serve},
      {"report", "write the HTML page of a run, or one that compares several", report},
      {"plan", "find which model goes on which device of a cluster, and what a run would cost", plan},
      {"simulate", "show the time and memory of a placement file without running it", simulate},
      {"calibrate", "measure the planner's constants on this machine, by short runs of a config", calibrate},
      {"weights", "compare the weights of two model directories, or show those of one", weights},
      {"bench", "run the quickstart and other measured runs", bench},
      {"worker", "join a run as a worker; a run starts its own workers", worker},
      {"completion", "print the completion script of a shell, or the man page: bash, zsh, fish, man", completion},
      {"version", "print the versions of collimate, torch and compiler, and the processor", version},
      {"help", "explain a verb, a recipe, data, lora, resume or a key of the config", help}};
  return list;
}

namespace {

constexpr const char* kTopics =
    "\n"
    "  collimate --plugin FILE VERB …   knows the parts of your own that the file registers\n"
    "  collimate help VERB         lists the options of a verb, as VERB --help does\n"
    "  collimate help RECIPE       shows a page with an example: sft, distill, reward, process_reward, dpo, kto, grpo, "
    "ppo; also data, "
    "lora, resume\n"
    "  collimate help KEY          explains a key or a section of the config, as train.learning_rate or rollout\n"
    "  collimate help reference    prints all keys as a Markdown page\n"
    "  collimate help recipes      lists the recipes; so do losses, advantages, rewards and presets for what a config "
    "may name\n"
    "  collimate help other-names  lists the keys of TRL, verl, LLaMA-Factory and OpenRLHF, and ours for them\n\n"
    "The environment variable COLLIMATE_ISA (avx2, avx512, avx512_bf16 or amx) chooses the processor's instructions. "
    "It\n"
    "changes the speed, and no result.\n";

void print_verbs() {
  fmt::print("collimate VERB …\n\n");
  for (const Verb& verb : verbs()) fmt::print("  {:10} {}\n", verb.name, verb.summary);
  fmt::print("{}", kTopics);
}

// Prints the keys of a section after the first `skipped` ones, except the one that says of what kind the entry is.
void print_keys(const base::Section& section, size_t skipped, const std::string& kind = "") {
  std::vector<base::OptionInfo> keys;
  section.describe_section("", keys);
  for (size_t i = skipped; i < keys.size(); ++i) {
    const base::OptionInfo& key = keys[i];
    if (key.path == kind) continue;
    const std::string limits = key.limits.empty() ? "" : fmt::format(" ({})", key.limits);
    fmt::print("    {} ({}{}{}) {}{}\n", key.path, key.default_value, key.unit.empty() ? "" : " ", key.unit, key.help,
               limits);
  }
}

// Prints the entries of `reward` that `wanted` accepts.
template <class Wanted>
void print_reward_forms(const Wanted& wanted) {
  const rlhf::RewardSection all;
  for (const rlhf::RewardForm& form : rlhf::reward_forms()) {
    if (!wanted(form)) continue;
    fmt::print("  {:26} {}\n", form.entry, form.summary);
    print_keys(*form.section, all.section_items().size(), form.key);
  }
  fmt::print("Each entry may also have\n");
  print_keys(all, 0);
}

void print_rewards() {
  fmt::print("reward: is a list of these entries\n");
  print_reward_forms([](const rlhf::RewardForm&) { return true; });
}

// Prints the entry of `reward` that a word names, a rule by its name. Returns false if it names none.
bool print_reward(const std::string& word) {
  const auto named = [&](const rlhf::RewardForm& form) {
    return form.entry == fmt::format("{{rule: {}}}", word) || (form.key == word && word != "rule");
  };
  const std::vector<rlhf::RewardForm> forms = rlhf::reward_forms();
  if (std::none_of(forms.begin(), forms.end(), named)) return false;
  fmt::print("an entry of reward: (collimate help rewards lists all)\n");
  print_reward_forms(named);
  return true;
}

void print_reference() {
  fmt::print("{}", base::config_reference(recipe::Config()));
  fmt::print("\n{}", base::config_reference(recipe::PipelineOptions(), "The file of `collimate pipeline`"));
  for (const rlhf::RewardForm& form : rlhf::reward_forms())
    fmt::print("\n{}", base::config_reference(*form.section, fmt::format("Entry of reward: `{}`", form.entry)));
}

void print_recipes() {
  for (const recipe::RecipeEntry& entry : recipe::recipes()) fmt::print("{:8} {}\n", entry.name, entry.summary);
}

constexpr int kHelpColumns = 100;

// Prints a name with a sentence behind it, and below that the keys of `algorithm` that it reads.
void print_choice(const std::string& name, const std::string& about, const std::vector<std::string>& options) {
  constexpr const char* kHead = "  {:<18} {}";
  if (!about.empty()) fmt::print("{}", plan::hanging(fmt::format(kHead, name, ""), about, kHelpColumns));
  const std::string below = fmt::format(kHead, about.empty() ? name : "", "reads ");
  if (!options.empty())
    fmt::print("{}", plan::hanging(below, fmt::format("{}", fmt::join(options, ", ")), kHelpColumns));
  else if (about.empty())
    fmt::print("  {}\n", name);
}

// Returns "recipe sft" or "recipes grpo and mine", and "" if no recipe trains by losses on such rows.
std::string recipes_of(const std::string& rows) {
  std::vector<std::string> names;
  for (const recipe::RecipeEntry& entry : recipe::recipes())
    if (std::ranges::find(entry.loss_rows, rows) != entry.loss_rows.end()) names.push_back(entry.name);
  return names.empty() ? "" : fmt::format("recipe{} {}", names.size() == 1 ? "" : "s", fmt::join(names, " and "));
}

void print_losses() {
  fmt::print("{}", plan::hanging("",
                                 "algorithm.loss_type names one of these losses, or several of a kind, which are "
                                 "added up by algorithm.loss_weights. Below each stand the keys of `algorithm` "
                                 "that it reads.",
                                 kHelpColumns));
  std::string rows;
  for (const rlhf::LossEntry& entry : rlhf::losses()) {
    const std::string recipes = recipes_of(entry.rows);
    if (entry.rows != rows)
      fmt::print("\nlosses on {}, {}\n", entry.rows,
                 recipes.empty() ? "for programs in C++ only, as no recipe reads such rows" : "for " + recipes);
    rows = entry.rows;
    for (const std::string& type : entry.types) {
      const auto about = entry.about.find(type);
      print_choice(type, about == entry.about.end() ? "" : about->second, entry.options(type));
    }
  }
}

void print_presets() { fmt::print("{}", recipe::presets_text()); }

void print_other_names() { fmt::print("{}", recipe::other_names_table()); }

void print_advantages() {
  fmt::print("{}", plan::hanging("",
                                 "algorithm.advantage names how the rewards of an iteration become the advantages "
                                 "by which its tokens are trained. Below each stand the keys of `algorithm` that "
                                 "it reads.",
                                 kHelpColumns));
  std::string rows;
  for (const rlhf::AdvantageEntry& entry : rlhf::advantages()) {
    if (entry.rows != rows)
      fmt::print("\n{}\n", entry.rows == "groups" ? "from the rewards of a prompt's samples, for recipe grpo"
                                                  : "from rewards and a value model, for recipe ppo");
    rows = entry.rows;
    print_choice(entry.name, entry.about, entry.options);
  }
}

// Returns the topic that a mistyped word is nearest to, or "". The word may be meant as a verb, another topic, a key's
// path, or the last part of a path ("epsilon_hi").
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
  throw base::InputError(base::expectation(
      "collimate help",
      "a verb, a recipe, data, lora, resume, a config key, reference, recipes, losses, advantages, rewards or presets",
      "\"" + word + "\"", "collimate help" + (near.empty() ? "" : " " + near)));
}

// Explains our key for a name of another program, or why there is none. Returns "" for a name that no program has.
std::string help_of_other_name(const std::string& word, const recipe::Config& config) {
  const base::KeyRemedy known = recipe::remedy_for_name(word);
  if (known.text.empty()) return "";
  if (known.key.empty()) return fmt::format("{} has no key here; try {}\n", word, known.text);
  const std::string text = base::config_help(config, known.key);
  return fmt::format("{} is here {}\n{}{}", word, known.text, text.empty() ? "" : "\n", text);
}

// Explains the keys that a word names without their section, a key by its name in another program, or the keys whose
// names have the word as a part, as "warmup". Returns "" if there is none.
std::string help_of_name(const std::string& word) {
  const recipe::Config config;
  std::vector<base::OptionInfo> options;
  config.describe_section("", options);
  std::string named, with_part;
  const std::string part = fmt::format("_{}_", word);
  for (const base::OptionInfo& option : options) {
    const std::string name = option.path.substr(option.path.rfind('.') + 1);
    if (option.path.ends_with(fmt::format(".{}", word)))
      named += base::config_help(config, option.path);
    else if (fmt::format("_{}_", name).find(part) != std::string::npos)
      with_part += base::config_help(config, option.path);
  }
  if (named.empty()) named = help_of_other_name(word, config);
  if (const std::string recipe = recipe::remedy_for_recipe(word); named.empty() && !recipe.empty())
    named = fmt::format("{} is here {}\n", word, recipe);
  return named.empty() ? with_part : named;
}

}  // namespace

std::vector<std::string> help_topics() {
  std::vector<std::string> topics = help_pages();
  topics.insert(topics.end(), {"reference", "recipes", "losses", "advantages", "rewards", "presets", "other-names"});
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
  const std::map<std::string, void (*)()> lists = {
      {"recipes", print_recipes}, {"losses", print_losses},   {"advantages", print_advantages},
      {"rewards", print_rewards}, {"presets", print_presets}, {"other-names", print_other_names}};
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
  if (text.empty() && print_reward(topic)) return 0;
  const std::string named = text.empty() ? help_of_name(topic) : text;
  if (named.empty()) throw_unknown_topic(topic);
  fmt::print("{}", named);
  return 0;
}

}  // namespace collimate::cli
