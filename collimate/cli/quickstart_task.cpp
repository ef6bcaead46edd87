#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/cli/quickstart.h"
#include "collimate/host/atomic_file.h"
#include "collimate/text/character_tokenizer.h"

namespace collimate::cli {
namespace {

namespace fs = std::filesystem;
constexpr uint32_t kTaskPurpose = 0x7a5c;

// Returns `count` distinct strings of digits in a random order that depends on the task's seed alone. Throws InputError
// for more than half of the strings that there are.
std::vector<std::string> draw_problems(const QuickstartTask& task, int64_t count) {
  int64_t space = 1;
  for (int64_t i = 0; i < task.digits; ++i) space *= 10;
  if (count > space / 2)
    throw base::InputError(base::expectation(
        "quickstart", fmt::format("at most {} problems of {} digits", space / 2, task.digits), std::to_string(count)));
  std::set<std::string> seen;
  std::vector<std::string> problems;
  for (uint32_t i = 0; static_cast<int64_t>(problems.size()) < count; ++i) {
    const auto number =
        static_cast<int64_t>(base::random_bits(task.seed, kTaskPurpose, i, 0) % static_cast<uint64_t>(space));
    std::string problem = fmt::format("{:0{}}", number, task.digits);
    if (seen.insert(problem).second) problems.push_back(std::move(problem));
  }
  return problems;
}

void write_rows(const fs::path& path, const std::vector<std::string>& problems, size_t begin, size_t end,
                const char* answer_key) {
  std::string lines;
  for (size_t i = begin; i < end; ++i) {
    std::string answer = problems[i];
    std::sort(answer.begin(), answer.end());
    lines += nlohmann::ordered_json{{"prompt", problems[i] + "="}, {answer_key, answer}}.dump() + "\n";
  }
  host::write_file_atomically(path, lines);
}

void write_start(const fs::path& directory) {
  fs::create_directories(directory);
  text::CharacterVocabulary vocabulary{.specials = {"<pad>", "<eos>"}, .eos = "<eos>", .pad = "<pad>"};
  for (char c = '0'; c <= '9'; ++c) vocabulary.tokens.emplace_back(1, c);
  vocabulary.tokens.emplace_back("=");
  text::CharacterTokenizer(vocabulary).save(directory);
  const nlohmann::ordered_json config = {{"architectures", {"LlamaForCausalLM"}},
                                         {"model_type", "llama"},
                                         {"vocab_size", 16},
                                         {"hidden_size", 128},
                                         {"num_hidden_layers", 4},
                                         {"num_attention_heads", 4},
                                         {"num_key_value_heads", 4},
                                         {"head_dim", 32},
                                         {"intermediate_size", 352},
                                         {"max_position_embeddings", 64},
                                         {"rms_norm_eps", 1e-5},
                                         {"rope_theta", 10000.0},
                                         {"tie_word_embeddings", false},
                                         {"pad_token_id", 0},
                                         {"bos_token_id", nullptr},
                                         {"eos_token_id", 1},
                                         {"hidden_act", "silu"}};
  host::write_file_atomically(directory / "config.json", config.dump(2) + "\n");
}

}  // namespace

void write_quickstart_task(const QuickstartTask& task, const std::string& directory) {
  const fs::path root = directory;
  fs::create_directories(root);
  const std::vector<std::string> all =
      draw_problems(task, task.demonstrations + task.held_out + task.problems + task.validation);
  const auto demonstrations = static_cast<size_t>(task.demonstrations);
  const size_t held_out = demonstrations + static_cast<size_t>(task.held_out);
  const size_t problems = held_out + static_cast<size_t>(task.problems);
  write_rows(root / "demonstrations.jsonl", all, 0, demonstrations, "completion");
  write_rows(root / "held_out.jsonl", all, demonstrations, held_out, "ground_truth");
  write_rows(root / "problems.jsonl", all, held_out, problems, "ground_truth");
  write_rows(root / "validation.jsonl", all, problems, all.size(), "completion");
  write_start(root / "start");
}

}  // namespace collimate::cli
