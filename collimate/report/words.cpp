#include "collimate/report/words.h"

#include <span>

namespace collimate::report {

namespace {

struct Word {
  std::string_view name;
  const char* words;
};

constexpr Word kPhases[] = {{"gen", "generating completions"},
                            {"old_log_prob", "log-probs of samples, computed again"},
                            {"reward", "computing rewards"},
                            {"ref", "log-probs of the reference"},
                            {"values", "estimating values"},
                            {"adv", "computing advantages"},
                            {"update_actor", "training"},
                            {"update_critic", "training the value model"},
                            {"testing", "held-out evaluation"},
                            {"swap", "models coming and leaving"},
                            {"teacher", "the teacher's likely tokens"}};

constexpr Word kMeasures[] = {{"loss", "loss per token"},
                              {"implicit_reward", "implicit reward"},
                              {"log_prob", "log-prob per token"},
                              {"lowest_step_score", "lowest score of a step"}};

std::string words_of(std::span<const Word> table, std::string_view name) {
  for (const Word& word : table)
    if (word.name == name) return word.words;
  return std::string(name);
}

}  // namespace

std::string phase_words(std::string_view phase) { return words_of(kPhases, phase); }

std::string measure_words(std::string_view measure) { return words_of(kMeasures, measure); }

}  // namespace collimate::report
