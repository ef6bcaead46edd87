#include "collimate/report/words.h"

#include <span>

namespace collimate::report {

namespace {

struct Word {
  std::string_view name;
  const char* words;
};

constexpr Word kPhases[] = {
    {"gen", "generating completions"},  {"old_log_prob", "log-probs of samples, computed again"},
    {"reward", "computing rewards"},    {"ref", "log-probs of the reference"},
    {"values", "estimating values"},    {"adv", "computing advantages"},
    {"update_actor", "training"},       {"update_critic", "training the value model"},
    {"testing", "held-out evaluation"}, {"swap", "models coming and leaving"}};

constexpr Word kMemory[] = {{"master", "trained weights, in 32 bits"},
                            {"values", "weights"},
                            {"panels", "weights, packed for matrix products"},
                            {"gradient", "gradients"},
                            {"optimizer", "optimizer state (two moments)"},
                            {"average", "moving average of the weights"},
                            {"activations", "activations kept for the backward pass"},
                            {"logits", "logits kept for the backward pass"},
                            {"workspace", "results passed between layers"},
                            {"kv_cache", "keys and values (the KV cache)"},
                            {"scratch", "working memory of single operations"},
                            {"tensors", "rows of data, and results of a pass"},
                            {"routed_experts", "experts of cached tokens"},
                            {"untagged", "everything else"}};

constexpr Word kMeasures[] = {
    {"loss", "loss per token"}, {"implicit_reward", "implicit reward"}, {"log_prob", "log-prob per token"}};

std::string words_of(std::span<const Word> table, std::string_view name) {
  for (const Word& word : table)
    if (word.name == name) return word.words;
  return std::string(name);
}

}  // namespace

std::string phase_words(std::string_view phase) { return words_of(kPhases, phase); }

std::string memory_words(std::string_view item) {
  const size_t slash = item.find('/');
  if (slash == std::string_view::npos) return words_of(kMemory, item);
  return std::string(item.substr(0, slash)) + ": " + words_of(kMemory, item.substr(slash + 1));
}

std::string measure_words(std::string_view measure) { return words_of(kMeasures, measure); }

}  // namespace collimate::report
