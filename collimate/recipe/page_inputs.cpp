// This file has the inputs of pages, by the rows that data gives.
#include "collimate/batch/padding.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/recipe/page.h"
#include "collimate/rlhf/types/baseline_sample.h"
#include "collimate/rlhf/types/model_answer.h"
#include "collimate/rlhf/types/ptx.h"

namespace collimate::recipe {

graph::Input prompt_input(bool greedy_baseline, bool texts) {
  graph::Input input{"prompts", {"uid", "prompt_uid", "ids", "trainable", "prompt_tokens", "example"}};
  if (greedy_baseline) input.columns.insert(input.columns.end(), {batch::kSampling.name, rlhf::kBaselineSample.name});
  if (texts) input.columns.insert(input.columns.end(), {rlhf::kPtxIds.name, rlhf::kPtxTrainable.name});
  return input;
}
graph::Input completion_input() { return {"examples", {"uid", "ids", "trainable"}}; }
graph::Input redrawn_input() { return {"examples", {"uid", "ids", "trainable", "prompt_uid", "prompt_tokens"}}; }
graph::Input marked_input(bool mismatched) {
  graph::Input input{"answers", {"uid", "ids", "trainable", rlhf::kDesirable.name}};
  if (mismatched)
    input.columns.insert(input.columns.end(), {rlhf::kMismatchedIds.name, rlhf::kMismatchedTrainable.name});
  return input;
}
graph::Input step_input() { return {"steps", {"uid", "ids", "trainable", rlhf::kStepRight.name}}; }
graph::Input asked(graph::Input input) {
  input.columns.insert(input.columns.end(), {batch::kPromptTokens.name, rlhf::kAsked.name});
  return input;
}
graph::Input choice_input() { return {"choices", {"uid", "prompt_uid", "ids", "trainable", "example"}}; }
graph::Input pair_input(const rlhf::Loss& loss) {
  graph::Input input{"pairs", {"uid", "pair_uid", "ids", "trainable"}};
  if (loss.reads(rlhf::kCompletion)) input.columns.push_back(rlhf::kCompletion.name);
  if (loss.reads(rlhf::kMargin)) input.columns.push_back(rlhf::kMargin.name);
  if (loss.reads(batch::kUnpaddedTokens)) input.columns.push_back(batch::kUnpaddedTokens.name);
  return input;
}

}  // namespace collimate::recipe
