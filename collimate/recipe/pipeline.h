#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/base/config.h"
#include "collimate/base/option.h"
#include "collimate/recipe/check.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/pipeline_split.h"

namespace collimate::recipe {

// Describes a step of a pipeline: a run of a recipe, in a folder of its own below the pipeline's directory.
struct PipelineStep {
  const char* folder;
  const char* recipe;  // also the section of the pipeline's config that holds keys of this step alone
  const char* words;   // what the step does, for a person
};
const std::array<PipelineStep, kPipelineSteps>& pipeline_steps();

// Holds what `collimate pipeline` is told, by its options and by a YAML file of the same keys.
struct PipelineOptions : base::Section {
  COLLIMATE_OPTION(std::string, actor_model, "", "",
                   "the model that SFT begins from, and that PPO goes on with: a directory or a hub name");
  COLLIMATE_OPTION(std::string, reward_model, "", "",
                   "the model that the reward model begins from; it needs the actor's tokenizer");
  COLLIMATE_OPTION(nlohmann::json, data, nullptr, "",
                   "pairs of a better and a worse answer, which the three steps share: a file, or a list of files or "
                   "of {path, format, columns}",
                   base::entry_list{});
  COLLIMATE_OPTION(nlohmann::json, sft_data, nullptr, "", "more rows for SFT alone, used whole; written like data",
                   base::entry_list{});
  COLLIMATE_OPTION(std::string, data_split, "2,4,4", "",
                   "shares of the rows that SFT, reward model and PPO get; no row is in two of them");
  COLLIMATE_OPTION(
      std::string, bad_rows, "stop", "",
      "what happens to rows that cannot be read: stop ends the pipeline with an error, drop leaves them out",
      base::one_of({"stop", "drop"}));
  COLLIMATE_OPTION(double, val_size, 0.1, "rows",
                   "how many rows of each step are held out to measure it: a share below 1, or a number",
                   base::at_least(0.0));
  COLLIMATE_OPTION(int64_t, seed, 1234, "", "seed of the split and of each step", base::at_least(int64_t{0}));
  COLLIMATE_OPTION(
      std::string, deployment_type, "single_gpu", "",
      "single_gpu: one device; single_node: a device for each core of this machine, which share data and optimizer",
      base::one_of({"single_gpu", "single_node", "multi_node"}));
  COLLIMATE_OPTION(nlohmann::json, all, nullptr, "", "keys of a config (collimate help KEY) for each step");
  COLLIMATE_OPTION(nlohmann::json, sft, nullptr, "", "keys of a config for step 1 alone");
  COLLIMATE_OPTION(nlohmann::json, reward, nullptr, "", "keys of a config for step 2 alone");
  COLLIMATE_OPTION(nlohmann::json, ppo, nullptr, "", "keys of a config for step 3 alone");
  COLLIMATE_OPTION(bool, download, false, "", "download models that the local cache does not have");

  void section_demands(const std::string& path) const override;
};

// Holds a pipeline as it was asked for. The constructor reads no file but the pipeline's own.
class Pipeline {
 public:
  // `file` is a YAML file, "" for none, and `sets` are overrides as of train. Throws InputError with file and line for
  // wrong keys; without an actor, a reward model or data; for models that are not there; for sources with a weight; and
  // for multi_node, which this program does not have.
  Pipeline(const std::string& file, const std::vector<std::string>& sets, std::string output);

  const PipelineOptions& options() const { return options_; }
  std::string directory(size_t step) const;  // of the step's run
  std::string model(size_t step) const { return directory(step) + "/model"; }
  SplitRequest split_request() const;

  // Returns the step's config: defaults, then what the pipeline says (models, data, seed), then `all`, then the step's
  // own section, of which later ones win. Throws InputError, which begins with the step's folder, for keys that are
  // wrong.
  Config config(size_t step) const;
  // Returns the same config as YAML that train reads, without the defaults.
  std::string yaml(size_t step) const;
  // Returns check's findings of the step before any step has run. Models that earlier steps are to make are replaced by
  // those that they begin from, whose weights are not read. A change since the step's run began that train would refuse
  // is a problem.
  Findings check(size_t step) const;
  // Returns whether the run of any step has begun and has learned something or may have.
  bool has_begun() const;

 private:
  base::ConfigNode values(size_t step) const;
  nlohmann::json wiring(size_t step) const;

  PipelineOptions options_;
  base::ConfigNode root_;
  std::string output_;
};

}  // namespace collimate::recipe
