#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/option.h"
#include "collimate/cli/arguments.h"
#include "collimate/plan/inputs/workload.h"

namespace collimate::cli {

// PlanOptions describe a run to `plan` and `simulate`: by a config, or by a flow with models and lengths. The `request`
// of a plan file holds these options under the same names. All but the first two are flags.
struct PlanOptions : base::Section {
  using Text = base::Option<std::string>;
  using Texts = base::Option<std::vector<std::string>>;
  using Number = base::Option<std::optional<int64_t>>;

  Text config{this, "config", "", "", "YAML file of a run"};
  Text directory{this, "directory", "", "", "from which the config's own paths are seen"};  // "": the current one
  Text flow{this, "flow", "", "", "the algorithm, where there is no config: ppo, grpo or the JSON file of a graph"};
  Text cluster{
      this, "cluster", "", "",
      "the cluster, as NODESxDEVICESxKIND: 16x8xA100-80, 8xH100, 2xcpu; @400Gb sets its network; + joins several "
      "kinds"};
  Text prompt{this, "prompt", "", "tokens",
              "length of a prompt in tokens: 512, mean:MEAN,SIGMA,CAP, lognormal:…, histogram:…"};
  Text completion{this, "completion", "", "tokens", "length of a completion in tokens, written the same way"};
  Text backend{this, "backend", "", "", "take the constants that were fitted to this software (default: generic ones)"};
  Text layouts{this, "layouts", "", "",
               "how models may be split: any, or dp, in which every device holds its whole model (default: dp with a "
               "config, and any where no CPU holds them so; any without)"};
  Text machine{this, "constants", "", "",
               "take the constants of this file, which collimate calibrate writes; --constant overrides single ones"};
  Text price{this, "price", "", "dollars/hour",
             "what an hour of one device costs, in dollars, or KIND=DOLLARS,… (default: assumed prices)"};
  Text form{this, "form", "", "",
            "look only at placements of this form: flattening, interleaving, nested, separation, split or standalone"};
  Texts models{this, "models", {}, "", "the models: ROLE=NAME or ROLE=DIRECTORY, …; a name alone is the policy's"};
  Texts sets{this, "set", {}, "", "replace the value of one key of the config: a.b=value"};
  Texts constants{
      this, "constant", {}, "", "NAME=VALUE: replace one constant of the cost model; --list constants shows them"};
  Texts devices{
      this,
      "device",
      {},
      "",
      "KIND.KEY=NUMBER: replace a number of the device table (memory_bytes, flops, per_node, …); NEW=KIND adds a kind "
      "that begins like another one"};
  Texts lora{this,
             "lora",
             {},
             "",
             "MODEL=RANK, …, as policy=64: train only LoRA adapters of this rank; the model's own weights are frozen"};
  Texts shadows{this, "shadow", {}, "", "MODEL, …: its training gets devices and layouts of its own, as MODEL_trainer"};
  Number rows{this, "rows", {}, "rows", "completions per iteration (1024)", base::at_least(int64_t{1})};
  Number updates{this,
                 "updates",
                 {},
                 "",
                 "optimizer steps per iteration (8, or the rows where they are fewer)",
                 base::at_least(int64_t{1})};
  Number iterations{
      this, "iterations", {}, "", "length of the run whose cost is shown (100)", base::at_least(int64_t{1})};
  Number micro_batch{this,
                     "micro_batch",
                     {},
                     "rows",
                     "rows of a micro-batch (default: the planner chooses)",
                     base::at_least(int64_t{1})};
  Number staleness{this,
                   "staleness",
                   {},
                   "iterations",
                   "most iterations that the weights which generate may be behind those that train (0)",
                   base::between(int64_t{0}, int64_t{collimate::plan::kMostStaleness})};
  Texts fixed{
      this, "fix", {}, "", "MODEL.FUNCTION=tp:4,pp:2,…: fix the layout of a function, in a placement file's words"};

  std::string file;  // the plan file whose `request` all options come from, for errors; "" if any came from elsewhere
};
// Adds the config as an option or argument with this name and help text.
void add_config(CLI::App& app, PlanOptions& options, const std::string& name, const std::string& help);
// Adds a flag for each other option except `directory`, with the option's own help text.
void add_plan_options(CLI::App& app, PlanOptions& options);

// Splits "reward=opt-350m" into ("reward=", "opt-350m"), and a name alone into ("", name).
std::pair<std::string, std::string> split_model(const std::string& text);
// Returns whether `value` is a model directory, that is, no name in the planner's table of models.
bool is_model_directory(const std::string& value);
// Returns the files that the options name: config, constants, flow and the models' config.json.
std::vector<NamedFile> files_of(const PlanOptions& options);

// Writes the options as the `request` of the plan file `file`, such that it can be read from any directory. Paths are
// relative to the file if it lies in the current directory or below, so that both may be moved together; else they are
// absolute.
std::string request_text(PlanOptions options, const std::string& file);
// Reads the `request` in the text of the plan file `file`, if it has one, and overrides it by `given`. Where `given`
// has a config or a flow, the request's options about the run (models, lengths, rows and so on) are dropped. Throws
// InputError with line and key for a malformed request.
PlanOptions options_of_file(const std::string& text, const std::string& file, PlanOptions given);

// Returns how many characters a line of a printed plan may have: as many as the terminal has, at least 80.
int output_columns();

}  // namespace collimate::cli
