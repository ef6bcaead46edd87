#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "collimate/base/option.h"
#include "collimate/base/option_check.h"
#include "collimate/base/section.h"
#include "collimate/graph/placement.h"
#include "collimate/rlhf/modules/loading_options.h"

namespace collimate::cli {

// Devices is an option that holds a number of devices, by default 1.
struct Devices : base::Option<int64_t> {
  Devices(base::Section* section, const char* name, const char* help)
      : Option(section, name, 1, "devices", help, base::at_least(int64_t{1})) {}
};

// LayoutOptions say on how many devices a verb has its model and how they share it, under a config's names.
struct LayoutOptions : base::Section {
  Devices devices{
      this, "devices",
      "number of CPU devices, among which the cores are divided; those that share no model with others have "
      "rows of their own"};
  Devices tp{
      this, "tp",
      "how many devices share the model's matrices (tensor parallelism); a divisor of devices and of the model's "
      "heads"};
  Devices pp{this, "pp",
             "how many devices share the model's blocks, each with some that follow each other (pipeline parallelism); "
             "tp times pp divides devices"};
  Devices ep{
      this, "ep",
      "how many devices share the experts of a mixture, each with rows of its own (expert parallelism); a divisor "
      "of devices by tp and pp"};
  rlhf::ReductionChunksOption reduction_chunks{this};

  // Returns the layout for generating with the model of `directory`, dp included. Throws InputError for sizes that do
  // not divide the devices, and for an ep above 1 that exceeds the model's number of experts.
  graph::Layout layout(const std::string& directory) const;
  // Returns the number of parts that a layer's sums are added up from; layouts with equal numbers give equal bits.
  int64_t sum_parts() const;
};

// ScoringLayoutOptions are those of a verb that also scores, and that may run its devices as separate processes.
struct ScoringLayoutOptions : LayoutOptions {
  Devices cp{this, "cp",
             "how many devices share the tokens of each row that is scored (context parallelism); tp times pp times cp "
             "divides devices"};
  COLLIMATE_OPTION(std::string, cp_kind, "gather", "",
                   "what the devices of cp exchange: the keys and values of all tokens, or tokens for heads (ulysses)",
                   base::one_of({"gather", "ulysses"}));
  COLLIMATE_OPTION(
      int64_t, zero, 0, "",
      "3: devices with the same part of the model share its weights, which are gathered while they compute",
      base::satisfying("0 or 3", [](int64_t stage) { return stage == 0 || stage == 3; }));
  COLLIMATE_OPTION(std::string, cluster, "local", "", "where workers run: as threads or as processes of this machine",
                   base::one_of({"local", "local-processes"}));

  // Returns the options under a config's keys, except reduction_chunks: devices, tp, pp, cp, cp_kind, ep, zero and
  // cluster.
  nlohmann::json config() const;
};

}  // namespace collimate::cli
