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

// One step of a pipeline is a run of a recipe, in a folder of its own below the pipeline's directory.
struct PipelineStep {
  const char* folder;
  const char* recipe;  // and the section of the pipeline's config that holds keys of this step alone
  const char* words;   // for a person
};
const std::array<PipelineStep, kPipelineSteps>& pipeline_steps();

// `collimate pipeline` is told this: by its options, and by a YAML file of the same keys.
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

// A pipeline as it was asked for. Nothing is read but the file.
class Pipeline {
 public:
  // `file`: YAML, "" for none; `sets` as of train. InputError with file and line; without an actor, a reward model or
  // data; for models that are not there; for multi_node, which this program does not have.
  Pipeline(const std::string& file, const std::vector<std::string>& sets, std::string output);

  const PipelineOptions& options() const { return options_; }
  std::string directory(size_t step) const;  // of the step's run
  std::string model(size_t step) const { return directory(step) + "/model"; }
  SplitRequest split_request() const;

  // The step's config: defaults, what the pipeline says (models, data, seed), `all`, the step's own section.
  // InputError, which begins with the step's name, for keys that are wrong.
  Config config(size_t step) const;
  // Gives the same as YAML that train reads.
  std::string yaml(size_t step) const;
  // Check's findings of the step before any step has run: models that earlier steps are to make are taken for those
  // that they begin from, without weights. A change since the step's run began that train would refuse is a problem.
  Findings check(size_t step) const;
  // Has any step begun?
  bool has_begun() const;

 private:
  base::ConfigNode values(size_t step) const;
  nlohmann::json wiring(size_t step) const;

  PipelineOptions options_;
  base::ConfigNode root_;
  std::string output_;
};

}  // namespace collimate::recipe
