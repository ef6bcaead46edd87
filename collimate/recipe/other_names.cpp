#include "collimate/recipe/other_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <string_view>

#include "collimate/recipe/chatlearn/rows.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/list.h"
#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/loss/list.h"

namespace collimate::recipe {
namespace {

// Returns whether `path` is called so: its last parts are `name`, or its last part begins with `name` where that ends
// in "*".
bool is_called(const std::string& path, std::string_view name) {
  const std::string dotted = fmt::format(".{}", path);
  if (!name.ends_with('*')) return dotted.ends_with(fmt::format(".{}", name));
  return std::string_view(dotted).substr(dotted.rfind('.') + 1).starts_with(name.substr(0, name.size() - 1));
}

// Returns "`a`, `b`" of names divided by spaces.
std::string quoted(std::string_view names) {
  std::string text;
  for (const std::string& name : chatlearn::parts(names, ' '))
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  return text;
}

constexpr const char* kOnCpus = "recipes compute on CPUs alone";
constexpr OtherName kCommonWords[] = {
    {"epochs", "", "run.epochs", "passes over the data; train.ppo_epochs are passes over an iteration's rows"},
    {"num_epochs", "", "run.epochs"},
    {"model", "", "models.policy.path", "models: {policy: DIR}"},
    {"scheduler", "", "train.lr_schedule"},
    {"precision", "", "models.policy.compute", "float32 or bfloat16"},
    {"train_file", "", "data.train"},
    {"eval_file", "", "data.eval"},
    {"gpus", "", "devices", kOnCpus},
    {"n_gpus", "", "devices", kOnCpus},
    {"num_gpus", "", "devices", kOnCpus},
    {"device", "", "", "recipes compute on CPUs alone; devices says how many"},
    {"use_cuda", "", "", kOnCpus},
    {"no_cuda", "", "", kOnCpus}};

// Returns a name in small letters, with "_" for "-" and without "plus" signs.
std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char letter : name)
    plain += letter == '+' ? "_plus" : std::string(1, letter == '-' ? '_' : static_cast<char>(std::tolower(letter)));
  return plain;
}

// Recipes by names that are neither those of a recipe here nor of a loss or an advantage.
struct OtherRecipe {
  std::string_view name, remedy;
};
constexpr OtherRecipe kOtherRecipes[] = {
    {"rm", "reward"},
    {"reward_model", "reward"},
    {"reward_modeling", "reward"},
    {"gkd", "distill"},
    {"pt", "sft with rows of {\"text\": …}"},
    {"pretrain", "sft with rows of {\"text\": …}"},
    {"reinforce", "grpo with algorithm: {advantage: reinforce_plus_plus}"},
    {"reinforce_plus_plus", "grpo with algorithm: {advantage: reinforce_plus_plus}"},
    {"gspo", "grpo with algorithm: {importance_sampling_level: sequence}"}};

// Returns the first recipe that trains by losses on such rows, "" where none does.
std::string recipe_of_rows(const std::string& rows) {
  for (const RecipeEntry& entry : recipes())
    if (std::ranges::find(entry.loss_rows, rows) != entry.loss_rows.end()) return entry.name;
  return "";
}

}  // namespace

std::string remedy_for_recipe(const std::string& name) {
  const std::string plain = plain_name(name);
  for (const RecipeEntry& entry : recipes())
    if (entry.name == plain) return fmt::format("recipe: {}", plain);
  for (const OtherRecipe& other : kOtherRecipes)
    if (other.name == plain) return fmt::format("recipe: {}", other.remedy);
  for (const rlhf::AdvantageEntry& entry : rlhf::advantages())
    if (entry.name == plain)
      return fmt::format("recipe: {} with algorithm: {{advantage: {}}}", entry.rows == "groups" ? "grpo" : "ppo",
                         plain);
  for (const rlhf::LossEntry& entry : rlhf::losses())
    if (std::ranges::find(entry.types, plain) != entry.types.end() && !recipe_of_rows(entry.rows).empty())
      return fmt::format("recipe: {} with algorithm: {{loss_type: {}}}", recipe_of_rows(entry.rows), plain);
  return "";
}

std::string other_names_table() {
  std::string table = "| their key | of | ours | note |\n|---|---|---|---|\n";
  for (const OtherName& other : other_names())
    if (!other.program.empty())
      table += fmt::format("| `{}` | {} | {} | {} |\n", other.name, other.program,
                           other.key.empty() ? "–" : fmt::format("`{}`", other.key), other.note);
  for (const chatlearn::Row& row : chatlearn::rows())
    table += fmt::format("| {} | ChatLearn, {} | {} | {} |\n", quoted(row.names), row.section,
                         row.key.empty() ? "–" : fmt::format(fmt::runtime(fmt::format("`{}`", row.key)), "NAME"),
                         row.remark);
  return table;
}

std::span<const OtherName> common_words() { return kCommonWords; }

base::KeyRemedy remedy_for_name(const std::string& path) {
  const OtherName* found = nullptr;
  for (const std::span<const OtherName> names : {other_names(), common_words()})
    for (const OtherName& other : names)
      if (is_called(path, other.name) && (found == nullptr || other.name.size() > found->name.size())) found = &other;
  if (found == nullptr) return {};
  if (found->key.empty()) return {"", fmt::format("leaving it out: {}", found->note)};
  return {std::string(found->key), fmt::format("\"{}\"{}{}", found->key, found->note.empty() ? "" : ": ", found->note)};
}

base::KeyRemedy Config::section_remedy(const std::string& key) const { return remedy_for_name(key); }

}  // namespace collimate::recipe
