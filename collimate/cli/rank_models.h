#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/cli/int8_error.h"
#include "collimate/cli/layout_options.h"
#include "collimate/cli/open_model.h"
#include "collimate/cli/rank_team.h"
#include "collimate/generate/speculation_options.h"

namespace collimate::cli {

// A RankModel is one rank's part of a model, with a whole draft model for speculation.
struct RankModel {
  OpenModel open;
  std::unique_ptr<model::Model> draft;  // null: no draft model
};

// A LoadingChoice says how a verb's model is loaded. It refers to the caller's options.
struct LoadingChoice {
  const std::string& directory;
  const rlhf::ComputeOption& compute;
  const rlhf::ChatTemplateOptions& chat;
  bool latent_cache = false;
  const generate::SpeculationOptions& speculation;
  bool measure_int8 = true;
};

// RankModels are a model directory loaded on the devices of a verb: one RankModel for each rank.
class RankModels {
 public:
  // Loads the model. Throws InputError when the directory holds no model, or `layout` does not fit it.
  RankModels(const LoadingChoice& choice, const LayoutOptions& layout);

  RankTeam& team() { return team_; }
  RankModel& of(const RankPlace& place) { return *base::at(models_, place.rank); }
  const OpenModel& first() const { return models_.front()->open; }
  // Returns what int8 weights change, which is measured on one device only; nothing with several, or another type.
  const std::optional<Int8Error>& int8_error() const { return int8_error_; }
  // Returns `options` with draft model, clock, threads and tokenizer of this rank filled in.
  generate::ServiceOptions service(const RankPlace& place, generate::ServiceOptions options);

 private:
  RankTeam team_;
  std::vector<std::unique_ptr<RankModel>> models_;
  std::optional<Int8Error> int8_error_;
};

}  // namespace collimate::cli
