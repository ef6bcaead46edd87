#include <iterator>

#include "collimate/base/at.h"
#include "collimate/text/dataset.h"

namespace collimate::text {
namespace {

// The names are in the order of DataShape.
constexpr const char* kShapeNames[] = {"prompt + completion",
                                       "messages",
                                       "preference pairs (prompt, chosen, rejected)",
                                       "ms-swift preference pairs (messages, rejected_response)",
                                       "completions with a desirable / undesirable label (KTO)",
                                       "steps of answers with a label for each (prompt, completions, labels)",
                                       "verl (prompt, reward_model.ground_truth, extra_info)",
                                       "prompts",
                                       "alpaca (instruction, input, output)",
                                       "sharegpt (conversations)",
                                       "question + answer",
                                       "plain text"};
static_assert(std::size(kShapeNames) == static_cast<size_t>(DataShape::kText) + 1);

bool has(const Row& row, const char* column) {
  const auto found = row.find(column);
  return found != row.end() && !found->is_null();
}

bool has_flag(const Row& row) {
  for (const char* column : {"label", "kto_tag"}) {
    const auto found = row.find(column);
    if (found != row.end() && (found->is_boolean() || *found == 0 || *found == 1)) return true;
  }
  return false;
}

bool has_completion(const Row& row) {
  return (has(row, "prompt") && (has(row, "completion") || has(row, "response"))) ||
         (has(row, "query") && has(row, "response"));
}

bool has_list(const Row& row, const char* column) {
  const auto found = row.find(column);
  return found != row.end() && found->is_array();
}

}  // namespace

std::string shape_name(DataShape shape) { return base::at(kShapeNames, shape); }

// The order matters: a shape with more particular columns comes before those whose columns it also has.
std::optional<DataShape> recognise_shape(const Row& row) {
  const bool pair = has(row, "chosen") && has(row, "rejected");
  if (has(row, "conversations")) return DataShape::kShareGpt;
  if (has(row, "messages") && (has(row, "rejected_response") || has(row, "rejected_messages"))) {
    return DataShape::kRejectedResponse;
  }
  if (has_flag(row) && (has(row, "messages") || has_completion(row))) return DataShape::kLabelled;
  if (has(row, "instruction") && (has(row, "output") || pair)) return DataShape::kAlpaca;
  if (pair) return DataShape::kPreference;
  if (has(row, "prompt") && (has(row, "reward_model") || has(row, "reward_spec") || has(row, "data_source"))) {
    return DataShape::kVerl;
  }
  if (has_completion(row)) return DataShape::kPromptCompletion;
  if (has(row, "prompt") && has_list(row, "completions") && has_list(row, "labels")) return DataShape::kSteps;
  if (has(row, "messages")) return DataShape::kMessages;
  if (has(row, "question") && has(row, "answer")) return DataShape::kQuestionAnswer;
  if (row.contains("prompt")) return DataShape::kPrompt;
  if (has(row, "text")) return DataShape::kText;
  return std::nullopt;
}

}  // namespace collimate::text
