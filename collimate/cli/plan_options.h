#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/option.h"
#include "collimate/cli/arguments.h"
#include "collimate/plan/inputs/workload.h"

namespace collimate::cli {

// `plan` and `simulate` are told this of the run: a config, or a flow with models and lengths. A plan file's `request`
// has the same under the same names; all but the first two are flags.
struct PlanOptions : base::Section {
  using Text = base::Option<std::string>;
  using Texts = base::Option<std::vector<std::string>>;
  using Number = base::Option<std::optional<int64_t>>;

  Text config{this, "config", "", "", "YAML file of a run"};
  Text directory{this, "directory", "", "", "from which the config's own paths are seen"};  // "": the current one
  Text flow{this, "flow", "", "", "ppo, grpo or a graph's JSON file, without a config"};
  Text cluster{this, "cluster", "", "",
               "NODESxDEVICESxKIND: 16x8xA100-80, 8xH100, 2xcpu; @400Gb for its network; several kinds joined by +"};
  Text prompt{this, "prompt", "", "tokens", "tokens of a prompt: 512, mean:MEAN,SIGMA,CAP, lognormal:…, histogram:…"};
  Text completion{this, "completion", "", "tokens", "the same of a completion"};
  Text backend{this, "backend", "", "", "whose software's constants to use (default: generic ones)"};
  Text layouts{
      this, "layouts", "", "",
      "any, or dp: every rank holds all of its model (default: dp with a config, as the recipes run; any without)"};
  Text machine{this, "constants", "", "", "a file of constants, as collimate calibrate writes; --constant overrides"};
  Text price{this, "price", "", "dollars/hour",
             "dollars of one device for an hour, or KIND=DOLLARS,… (default: assumed ones)"};
  Text form{this, "form", "", "",
            "only placements of it: flattening, interleaving, nested, separation, split, standalone"};
  Texts models{this, "models", {}, "", "MODEL=NAME or DIRECTORY, …; a name alone is the policy's"};
  Texts sets{this, "set", {}, "", "override one key of the config: a.b=value"};
  Texts constants{this, "constant", {}, "", "NAME=VALUE of the cost model"};
  Texts devices{this,
                "device",
                {},
                "",
                "KIND.KEY=NUMBER of the device table (memory_bytes, flops, per_node, …), or NEW=KIND, a kind like it"};
  Texts lora{this, "lora", {}, "", "MODEL=RANK, …: of a model that trains, whose other weights are frozen"};
  Texts shadows{
      this, "shadow", {}, "", "MODEL, …: its training becomes MODEL_trainer, with devices and layouts of its own"};
  Number rows{this, "rows", {}, "rows", "completions per iteration (1024)", base::at_least(int64_t{1})};
  Number updates{this,
                 "updates",
                 {},
                 "",
                 "optimizer steps per iteration (8, or the rows where they are fewer)",
                 base::at_least(int64_t{1})};
  Number iterations{this, "iterations", {}, "", "of the run whose cost is shown (100)", base::at_least(int64_t{1})};
  Number micro_batch{this, "micro_batch", {}, "rows", "rows, fixed (default: free)", base::at_least(int64_t{1})};
  Number staleness{this,
                   "staleness",
                   {},
                   "iterations",
                   "iterations that a rollout may run ahead, at most (0)",
                   base::between(int64_t{0}, int64_t{collimate::plan::kMostStaleness})};
  Texts fixed{this, "fix", {}, "", "MODEL.FUNCTION=tp:4,pp:2,…: its layout, in a placement file's words"};

  std::string file;  // whose request they are and no more, for errors; else ""
};
// `name` is what a verb calls the config, and `help` what it says of it.
void add_config(CLI::App& app, PlanOptions& options, const std::string& name, const std::string& help);
// A flag for each of the others but `directory`, which says what the option's help says.
void add_plan_options(CLI::App& app, PlanOptions& options);

// "reward=opt-350m" as ("reward=", "opt-350m").
std::pair<std::string, std::string> split_model(const std::string& text);
// Whether a model is said by a directory and not by its name.
bool is_model_directory(const std::string& value);
// The files that they name: config, constants, flow and the models' config.json.
std::vector<NamedFile> files_of(const PlanOptions& options);

// These options as the `request` of the plan file `file`, which holds anywhere: paths are seen from the file where it
// lies in the current directory or below, and may be moved with it; else they are absolute.
std::string request_text(PlanOptions options, const std::string& file);
// The request in the text of the plan file `file`, none without one; options that are given override it. InputError
// with line and key for what is no request.
PlanOptions options_of_file(const std::string& text, const std::string& file, PlanOptions given);

// Characters in a line of what a verb prints of plans: as many as the terminal has, at least 80.
int output_columns();

}  // namespace collimate::cli
