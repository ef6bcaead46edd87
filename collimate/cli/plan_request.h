#pragma once

#include <string>
#include <vector>

#include "collimate/cli/arguments.h"
#include "collimate/plan/request.h"

namespace collimate::cli {

// What `plan` and `simulate` are told of the run: a config, or a flow with models and lengths.
struct PlanOptions {
  std::string config;  // YAML; "" with `flow`
  std::string flow, cluster, prompt, completion, backend, layouts;
  std::vector<std::string> models, sets, constants;
  int64_t rows = 0, updates = 0, iterations = 0, micro_batch = 0;
  int staleness = 0;
};
void add_plan_options(CLI::App& app, PlanOptions& options);

struct PlanRequest {
  collimate::plan::Request request;
  int64_t iterations = 100;  // of the run whose cost is asked for
};
// Reads shapes, config and cluster. InputError with the nearest valid choice for what is wrong.
PlanRequest plan_request(const PlanOptions& options);

// The part of it that a config gives: graph, shapes, rows and updates as the recipe has them; prompts and completions
// at their longest; CPU devices, of which each holds all of its models.
void read_plan_config(const PlanOptions& options, PlanRequest& made);

// The command that gives these options, in one line, as the first comment of a plan file; and the options of such a
// file, which those given override.
std::string plan_comment(const PlanOptions& options);
PlanOptions options_of_file(const std::string& text, const PlanOptions& given);

}  // namespace collimate::cli
