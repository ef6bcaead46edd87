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

// A RankModel is what one rank has of a model, with the whole draft that guesses for it.
struct RankModel {
  OpenModel open;
  std::unique_ptr<model::Model> draft;  // null: none
};

// How a verb's model is loaded.
struct LoadingChoice {
  const std::string& directory;
  const rlhf::ComputeOption& compute;
  const rlhf::ChatTemplateOptions& chat;
  bool latent_cache = false;
  const generate::SpeculationOptions& speculation;
  bool measure_int8 = true;
};

// A model directory on the devices of a verb: a RankModel on each.
class RankModels {
 public:
  // InputError when the directory is no model's, or `layout` does not fit it.
  RankModels(const LoadingChoice& choice, const LayoutOptions& layout);

  RankTeam& team() { return team_; }
  RankModel& of(const RankPlace& place) { return *base::at(models_, place.rank); }
  const OpenModel& first() const { return models_.front()->open; }
  // Measured on one device; nothing of several.
  const std::optional<Int8Error>& int8_error() const { return int8_error_; }
  // Completes the options for one rank.
  generate::ServiceOptions service(const RankPlace& place, generate::ServiceOptions options);

 private:
  RankTeam team_;
  std::vector<std::unique_ptr<RankModel>> models_;
  std::optional<Int8Error> int8_error_;
};

}  // namespace collimate::cli
