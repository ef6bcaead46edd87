#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "collimate/plan/published/scenario_parts.h"
#include "collimate/plan/published/text.h"

// What may stand in a column, so that nothing else passes for having been read: what the parts of a scenario are read
// from, and words of the runs that change nothing of it.
namespace collimate::plan::published {
namespace {

struct KnownColumn {
  const char *column, *words;
};

constexpr KnownColumn kKnown[] = {
    {"algo", R"(\b(?:PPO|GRPO|DAPO|ReMax|RLOO|Safe-?RLHF|step 3|full|LoRA|no critic/ref)\b)"},
    {"gpu_type", R"(^[^ (,]+|\([^)]*\)|\b[0-9]+ ?/ ?node\b|\b(?:[0-9]+ ?(?:x|×) ?)?[0-9]+(?:\.[0-9]+)? ?G)"
                 R"((?:b|bps|bit/s)\b|\b(?:RDMA|RoCE(?:v2)?|IB)\b)"},
    {"batch", R"(\bprompts x gens [0-9]+x[0-9]+\b|\b[0-9]+ ?(?:prompts )?x ?[0-9]+\b)"
              R"(|\b[0-9]+ (?:prompts|requests|samples|minibatches|PPO epochs?)\b|\bmini [0-9]+\b)"
              R"(|\b[0-9.]+k (?:samples|prompts|rows|pairs)(?:/epoch)?\b|(?:<=)?\b[0-9]+ pairs(?:/step)?\b)"
              R"(|\b[0-9.]+M tok\b|/step\b|\bsample_per_episode [0-9]+\b|\b(?:train )?GBS [0-9]+\b|^[0-9]+\b)"},
    {"prompt_len", R"(^[0-9]+$|\bmax [0-9]+\b)"},
    {"gen_len", R"(^[0-9]+(?: ?- ?[0-9]+)?$|\bmax (?:total )?[0-9]+\b|\b(?:avg|mean) [0-9]+\b|\b[0-9]+k context\b)"
                R"(|^[0-9]+ fixed\b|\bno EOS\b)"},
    {"placement",
     R"(\bActor/Critic/Ref/RM GPUs\b|\b[0-9]+(?:/[0-9]+){3}\b|\bvLLM:Actor:Critic = |\b[0-9]+(?: ?: ?[0-9]+){2}\b)"
     R"(|\b[0-9]+%? ?(?:(?:train(?:er|ing)?|gen(?:eration)?|roll ?out|inference|infer)\b)? ?(?::|->) ?[0-9]+)"
     R"((?:%|\b) ?(?:(?:train(?:er|ing)?|gen(?:eration)?|roll ?out|inference|infer)\b)?|\bratio\b)"
     R"(|\b(?:max )?staleness eta=[0-9.]+|\bstaleness_threshold=[0-9.]+|\b(?:checkpoint_engine|require_batches)=[0-9]+)"
     R"(|\buse_trainer_do_validate\b|\bfully[ _]async\b|\bone-step-off\b|\bon policy\b|\bsync(?:hronous)?\b)"
     R"(|\b(?:all six roles |all )?colocated?\b|\bstandalone\b|\bsplit\b|\binterleav(?:ing|ed)\b|\bseparation\b)"
     R"(|\bdisaggregated\b|\bseparated groups\b|\bvLLM\b|\bMegatron heuristic\b|\bTP[0-9]+ intra-node\b|\bsearched\b)"
     R"(|\bMCMC\b|\bhybrid engine\b|\bZeRO(?:-[0-9])?\b|\b(?:Adam|optimizer|RM/ref|param|offload)\b|\bEMS in [0-9.]+)"},
    {"parallelism",
     R"(\bgen\[TP,PP\]=\[[0-9]+,[0-9]+\]|\btrain\[[A-Z,]+\]=\[[0-9,]+(?:n/a)?\]|\b(?:TP|PP|EP|CP|DP) ?=? ?[0-9]+\b)"
     R"(|\b(?:ref|reward|value) [0-9]+(?: GPUs)?\b|\b(?:policy|rollout|vLLM|gen|generation|ppo|train|training|reward|ref)\b)"
     R"(|\b(?:value|critic)\b|\b(?:on )?[0-9]+ GPUs?(?: each|/instance)?\b|\bM?BS[0-9]+\b|\boffload(?: [0-9.]+)?)"
     R"(|\b(?:Adam|optimizer|hybrid engine|EMS all)\b|\b(?:full )?recompute\b|\bZeRO-[0-9]\b)"}};

[[noreturn]] void reject_column(const std::string& column, const std::string& text, const std::string& rest) {
  throw NotModelled{column + " '" + text + "'" + (rest == text ? "" : ", of which '" + rest + "'") + " is not read"};
}

// Less the marks between words, at both ends.
std::string trimmed(const std::string& text) {
  constexpr const char* kMarks = " \t,;:/()+";
  const size_t begin = text.find_first_not_of(kMarks);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kMarks) + 1 - begin);
}

}  // namespace

void require_known_words(const Row& row) {
  static const auto kExpressions = [] {
    std::vector<std::regex> made;
    for (const KnownColumn& known : kKnown) made.emplace_back(known.words, std::regex::icase | std::regex::optimize);
    return made;
  }();
  for (size_t i = 0; i < std::size(kKnown); ++i) {
    const std::string& text = row[kKnown[i].column];
    const std::string rest = trimmed(std::regex_replace(text, kExpressions[i], ";"));
    if (rest.find_first_not_of(" ,;:/()+") != std::string::npos) reject_column(kKnown[i].column, text, rest);
  }
  for (const char* column : {"prompt_len", "gen_len"})
    if (match(row[column], R"((?:^|[^0-9.])0+(?![0-9.]))")) reject_column(column, row[column], row[column]);
}

}  // namespace collimate::plan::published
