#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/recipe/config.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// "1 row", "2 rows".
std::string counted(int64_t count, const std::string& noun);

// A run of fewer updates than these hardly moves a model at a usual learning rate: check and train say so.
constexpr int64_t kFewUpdates = 20;

// A config's numbers come to this: rows, updates, micro-batches and epochs of a run. Pure arithmetic.
struct BatchArithmetic {
  bool rollouts = false;           // rows are samples of prompts
  int64_t group_size = 1;          // rows of one example
  int64_t rows = 0;                // of an iteration
  int64_t rows_per_update = 0;     // of one optimizer step; the last of an iteration may have fewer
  int64_t updates = 0;             // optimizer steps of an iteration
  int64_t total_updates = 0;       // of the run
  int64_t longest_row = 0;         // tokens; with rollouts the longest prompt and the longest completion
  int64_t longest_prompt = 0;      // tokens
  int64_t micro_batch_tokens = 0;  // of one forward and backward
  int64_t micro_batches = 0;       // of an update, at most
  int64_t examples = 0;            // of data.train, an epoch
  double epochs = 0;               // of the run
  int64_t examples_beyond = 0;     // those that the last iteration reads after run.epochs, where this is set
};

// The token budget of the trained model's micro-batches.
int64_t micro_batch_tokens(const Config& config, const Plan& plan);

// `longest_prompt` and `longest_row` in tokens as the data has them.
BatchArithmetic batch_arithmetic(const Config& config, const Plan& plan, int64_t examples, int64_t longest_prompt,
                                 int64_t longest_row);

// One line for each step, with the numbers that it is made of.
std::vector<std::string> arithmetic_lines(const BatchArithmetic& numbers, const Config& config);
nlohmann::ordered_json to_json(const BatchArithmetic& numbers);

}  // namespace collimate::recipe
