#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/recipe/config.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Returns the count with its noun, in the plural unless the count is 1: "1 row", "2 rows".
std::string counted(int64_t count, const std::string& noun);

// A run of fewer updates than this hardly changes a model at a usual learning rate, and check and train warn of it.
constexpr int64_t kFewUpdates = 20;

// Holds the rows, updates, micro-batches and epochs of a run, which follow from its config by arithmetic alone.
struct BatchArithmetic {
  bool rollouts = false;           // rows are samples of prompts
  int64_t group_size = 1;          // rows of one example
  int64_t rows = 0;                // of an iteration
  int64_t trained = 0;             // of these rows; the others are greedy samples of a baseline
  int64_t rows_per_update = 0;     // of one optimizer step; the last step of an iteration may have fewer
  int64_t updates = 0;             // optimizer steps of an iteration
  int64_t total_updates = 0;       // of the run
  int64_t longest_row = 0;         // tokens; with rollouts of the longest prompt and completion together
  int64_t longest_prompt = 0;      // tokens
  int64_t micro_batch_tokens = 0;  // the most of one forward and backward pass
  int64_t micro_batches = 0;       // of an update, at most
  int64_t examples = 0;            // of data.train in one epoch
  double epochs = 0;               // passes over data.train in the run
  int64_t examples_beyond = 0;     // examples that the last iteration reads beyond run.epochs; 0 where that is not set
  // Iterations of an epoch, 0 with data.last_batch: cycle, and what is left of its examples, for an iteration of their
  // own (retain) or none (drop).
  int64_t epoch_iterations = 0, examples_left = 0;
};

// Returns the most tokens that one micro-batch of the trained model may have.
int64_t micro_batch_tokens(const Config& config, const Plan& plan);

// Computes the numbers of a run. `examples`: those of data.train in an epoch. `longest_prompt` and `longest_row`:
// tokens, as the data has them; with rollouts `longest_row` is not read.
BatchArithmetic batch_arithmetic(const Config& config, const Plan& plan, int64_t examples, int64_t longest_prompt,
                                 int64_t longest_row);

// Returns a line for each step of the arithmetic, with the numbers that it is made of, and lines with warnings.
std::vector<std::string> arithmetic_lines(const BatchArithmetic& numbers, const Config& config);
nlohmann::ordered_json to_json(const BatchArithmetic& numbers);

}  // namespace collimate::recipe
