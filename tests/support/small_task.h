#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/fault.h"
#include "collimate/base/immovable.h"
#include "collimate/recipe/list.h"
#include "collimate/text/character_tokenizer.h"

// A task and a model so small that a whole run takes a second: sort three digits.
namespace collimate::test {

namespace fs = std::filesystem;

// A directory of this process, removed with the object.
class Scratch : private base::Immovable {
 public:
  explicit Scratch(const std::string& name)
      : path_(fs::temp_directory_path() / fmt::format("collimate-{}-{}", name, ::getpid())) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// The program `collimate` that does what this environment, or that of the test, asks: the one that is shipped, unless a
// test hook is set.
inline std::string collimate_program(const Environment& environment = {}) {
  bool hooked = !base::test_hook_warning().empty();
  for (const auto& [name, value] : environment) hooked = hooked || name.starts_with("COLLIMATE_TEST_");
  return hooked ? COLLIMATE_BIN_DIR "/collimate-hooked" : COLLIMATE_BIN_DIR "/collimate";
}

inline void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Puts `to` in the place of the first `from` of a file, which has it.
inline void replace_in(const fs::path& file, const std::string& from, const std::string& to) {
  const std::string text = read_text(file);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << file << " without " << from;
  write_text(file, text.substr(0, at) + to + text.substr(at + from.size()));
}

inline std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// start/: configuration and tokenizer of a Llama of two layers, no weights.
inline void write_small_model(const fs::path& directory) {
  fs::create_directories(directory);
  text::CharacterVocabulary vocabulary{.specials = {"<pad>", "<eos>"}, .eos = "<eos>", .pad = "<pad>"};
  for (char c = '0'; c <= '9'; ++c) vocabulary.tokens.emplace_back(1, c);
  vocabulary.tokens.emplace_back("=");
  text::CharacterTokenizer(vocabulary).save(directory);
  write_text(directory / "config.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "vocab_size": 13, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
    "head_dim": 16, "intermediate_size": 64, "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "tie_word_embeddings": false, "pad_token_id": 0, "bos_token_id": null, "eos_token_id": 1,
    "hidden_act": "silu"})");
}

// Writes below `root`: start/, demonstrations.jsonl, problems.jsonl, held_out.jsonl (disjoint), pairs.jsonl,
// marked.jsonl and steps.jsonl.
inline void write_small_task(const fs::path& root) {
  write_small_model(root / "start");
  std::string demonstrations, problems, held_out, pairs, marked, steps;
  for (int i = 0; i < 120; ++i) {
    const std::string problem = fmt::format("{:03}", (i * 337 + 11) % 1000);
    std::string answer = problem;
    std::sort(answer.begin(), answer.end());
    const std::string wrong(answer.rbegin(), answer.rend());
    const std::string prompt = "{\"prompt\": \"" + problem + "=\", ";
    if (i < 40) demonstrations += prompt + "\"completion\": \"" + answer + "\"}\n";
    if (i < 40) pairs += prompt + "\"chosen\": \"" + answer + "\", \"rejected\": \"" + wrong + "9\"}\n";
    if (i < 40)
      marked += prompt + "\"completion\": \"" + (i % 2 == 0 ? answer : wrong + "9") +
                (i % 2 == 0 ? "\", \"label\": true}\n" : "\", \"label\": false}\n");
    if (i < 40)
      steps += prompt + "\"completions\": [\"" + answer.substr(0, 1) + "\", \"" + (i % 2 == 0 ? answer : wrong) +
               "\"], \"labels\": [true, " + (i % 2 == 0 ? "true]}\n" : "false]}\n");
    if (i >= 40 && i < 112) problems += prompt + "\"ground_truth\": \"" + answer + "\"}\n";
    if (i >= 112) held_out += prompt + "\"ground_truth\": \"" + answer + "\"}\n";
  }
  write_text(root / "demonstrations.jsonl", demonstrations);
  write_text(root / "problems.jsonl", problems);
  write_text(root / "held_out.jsonl", held_out);
  write_text(root / "pairs.jsonl", pairs);
  write_text(root / "marked.jsonl", marked);
  write_text(root / "steps.jsonl", steps);
}

// The YAML of a run of three iterations on the task below `root`, from random weights.
inline std::string small_config(const std::string& recipe, const fs::path& root) {
  const rlhf::RowKind rows = recipe::find_recipe(recipe).rows;
  const bool prompts = rows == rlhf::RowKind::kPrompt;
  const bool pairs = rows == rlhf::RowKind::kPreference, marked = rows == rlhf::RowKind::kMarked;
  const bool steps = rows == rlhf::RowKind::kSteps;
  const std::string data = prompts  ? "problems"
                           : pairs  ? "pairs"
                           : marked ? "marked"
                           : steps  ? "steps"
                                    : "demonstrations";
  const std::string teacher =
      recipe::needs_teacher(recipe::find_recipe(recipe))
          ? fmt::format(", teacher: {{path: {}/start, from_scratch: true, initializer_std: 0.4}}", root.string())
          : "";
  std::string text = fmt::format(
      "recipe: {0}\n"
      "models: {{policy: {{path: {1}/start, from_scratch: true, initializer_std: 0.1}}{3}}}\n"
      "data: {{train: {1}/{2}.jsonl{4}}}\n"
      "run: {{iterations: 3, seed: 7, threads: 1, samples_every: 1}}\n",
      recipe, root.string(), data, teacher, steps ? ", step_separator: \"=\"" : "");
  if (!prompts) return text + "train: {samples_per_update: 8, learning_rate: 1e-3}\n";
  return text +
         "train: {learning_rate: 1e-3}\n"
         "reward: [{rule: regex, pattern: \"^[0-4]\"}]\n"
         "rollout: {prompts_per_iteration: 4, samples_per_prompt: 4, prompt_tokens: 8, completion_tokens: 6}\n";
}

}  // namespace collimate::test
