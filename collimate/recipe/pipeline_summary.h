#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "collimate/recipe/pipeline.h"

namespace collimate::recipe {

// summary.json of a pipeline: what it was asked for, and of each step what that run's own summary says, where it has
// ended. `changes`: of a step, by its metrics.jsonl.
nlohmann::ordered_json pipeline_summary(
    const Pipeline& pipeline, const PipelineSplit& split,
    const std::function<nlohmann::ordered_json(const std::filesystem::path&)>& changes);

}  // namespace collimate::recipe
