#include "collimate/cli/help_pages.h"

#include <fmt/format.h>

#include "collimate/plan/show/columns.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/run_files.h"
#include "collimate/recipe/starter.h"
#include "collimate/rlhf/reward/reward.h"

namespace collimate::cli {
namespace {

constexpr const char* kData =
    "A data file is JSON lines (.jsonl), JSON (.json), a table (.csv, .tsv), Parquet (.parquet), Arrow (.arrow) or one "
    "plain text\n(.txt); texts may be compressed (.gz .zst .bz2 .lz4). A directory or a pattern (shards/*.jsonl) names "
    "several "
    "files. The shape of its "
    "rows\n"
    "is recognised by its columns, and `collimate check` shows what was recognised, with the tokens that are "
    "trained.\n\n"
    "{}If your columns have other names, say so with the file. Several files are a list, and a weight says how often "
    "an\n"
    "epoch uses each row:\n\n"
    "data:\n"
    "  train:\n"
    "    - {{path: mine.jsonl, columns: {{question: prompt, solution: ground_truth}}}}\n"
    "    - {{path: more.parquet, weight: 0.5}}\n"
    "  val_size: 0.05        # holds out a part of these rows, where there is no eval: FILE\n"
    "  long_rows: truncate   # or drop; by default a row above data.max_tokens stops the run\n"
    "  bad_rows: drop        # by default a row that cannot be read stops the run\n";

constexpr const char* kLora =
    "LoRA trains small matrices, the adapters, beside the weights of the model, which stay as they are. After the "
    "run,\n"
    "model/ holds the model with the adapters merged into its weights, and model/adapter/ the adapters alone, in "
    "PEFT's files.\n\n"
    "models:\n"
    "  policy:\n"
    "    path: MODEL\n"
    "    lora: {rank: 16, alpha: 32}   # rank 0 trains all weights instead\n"
    "train:\n"
    "  learning_rate: 2.0e-4           # sft's default with LoRA: ten times its rate for all weights\n\n"
    "With dora: true adapters turn the rows of each matrix, and the lengths of rows are trained too (DoRA).\n"
    "A path with PEFT's adapters and their rank trains these on; without lora it is the merged model.\n\n"
    "collimate help models.policy.lora lists all keys.\n";

constexpr const char* kResume =
    "A run that was stopped or killed continues from its newest checkpoint when you give the same command again. The "
    "result\n"
    "has the same bits as if it had never been stopped.\n\n"
    "  collimate train run.yaml --output runs/mine            # continue where it stopped\n"
    "  collimate train run.yaml --output runs/mine --set run.iterations=200    # train longer than planned before\n"
    "  collimate train run.yaml --output runs/other --resume runs/mine/checkpoints/step-000050    # branch off\n"
    "  collimate train run.yaml --output runs/mine --overwrite    # remove that run and begin anew\n\n"
    "Ctrl-C ends a run after the current iteration and saves a checkpoint; a second Ctrl-C ends it at once.\n\n"
    "A run that continues may have another value of these keys, which change its length, what is kept of it or where "
    "it\n"
    "runs, and nothing of what is computed (on other devices to rounding) but a learning rate that falls until the "
    "end.\n"
    "Any other key that differs is an error that shows both values.\n\n"
    "{}\n"
    "An entry of reward may also change these keys, which say where, how and with which rights it runs:\n\n{}";

// Returns the keys of a config that are not part of its hash, as lines of a page.
std::string keys_that_may_change() {
  const recipe::Config config;
  const nlohmann::json all = base::to_json(config.section_value()).flatten();
  const nlohmann::json hashed = base::to_json(config.section_value(true)).flatten();
  std::vector<std::string> keys;
  for (const auto& [pointer, value] : all.items())
    if (!hashed.contains(pointer)) keys.push_back(recipe::config_key(pointer));
  return plan::hanging("  ", keys, 100);
}

std::string rights_that_may_change() { return plan::hanging("  ", rlhf::reward_rights(), 100); }

std::string data_page() {
  std::string rows;
  for (const recipe::RecipeEntry& entry : recipe::recipes())
    rows += fmt::format("{}:\n{}\n", entry.name, recipe::data_shapes(entry.name));
  return fmt::format(kData, rows);
}

std::string recipe_page(const recipe::RecipeEntry& entry) {
  return fmt::format(
      "{} trains {}.\n\n"
      "Rows of its data, each in one of these shapes:\n\n"
      "{}\n"
      "A config to begin with (collimate init {} MODEL DATA writes it):\n\n"
      "{}",
      entry.name, entry.summary, recipe::data_shapes(entry.name), entry.name,
      recipe::starter(entry.name, "MODEL", "DATA.jsonl"));
}

}  // namespace

std::vector<std::string> help_pages() {
  std::vector<std::string> names = recipe::recipe_names();
  names.insert(names.end(), {"data", "lora", "resume"});
  return names;
}

std::string help_page(const std::string& name) {
  if (name == "data") return data_page();
  if (name == "lora") return kLora;
  if (name == "resume") return fmt::format(kResume, keys_that_may_change(), rights_that_may_change());
  for (const recipe::RecipeEntry& entry : recipe::recipes())
    if (entry.name == name) return recipe_page(entry);
  return "";
}

}  // namespace collimate::cli
