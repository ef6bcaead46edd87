#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "collimate/recipe/pipeline.h"

namespace collimate::recipe {

// Returns summary.json of a pipeline: what it was asked for, and for each step that has ended what the summary of its
// run says. `changes` says how the metrics of a step have changed, from its metrics.jsonl.
nlohmann::ordered_json pipeline_summary(
    const Pipeline& pipeline, const PipelineSplit& split,
    const std::function<nlohmann::ordered_json(const std::filesystem::path&)>& changes);

}  // namespace collimate::recipe
