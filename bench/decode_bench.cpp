// Tokens per second of generation, prefill included, as the peers' decode scripts measure it: greedy, B different
// prompts of 64 tokens, 128 new tokens each.
//   bench_decode MODEL_DIRECTORY [float32 or bfloat16] [repeats] [B …]
// One line of JSON per batch: least and largest seconds over the repeats (after one warm-up), tokens per second of the
// best, seconds of prefill alone, seconds of loading, peak memory.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/generate/engine.h"
#include "collimate/host/cpu.h"
#include "collimate/host/memory.h"
#include "collimate/model/model.h"
#include "collimate/tensor/aten_threads.h"

namespace {

namespace base = collimate::base;
namespace generate = collimate::generate;
namespace model = collimate::model;
namespace tensor = collimate::tensor;

constexpr int64_t kPromptTokens = 64, kNewTokens = 128;

std::vector<std::vector<int32_t>> prompts_of(int64_t batch, int64_t vocabulary) {
  std::vector<std::vector<int32_t>> prompts(static_cast<size_t>(batch));
  uint64_t draw = 1;
  for (std::vector<int32_t>& prompt : prompts)
    for (int64_t t = 0; t < kPromptTokens; ++t) {
      draw = draw * 6364136223846793005U + 1442695040888963407U;
      prompt.push_back(static_cast<int32_t>(3 + (draw >> 33) % static_cast<uint64_t>(vocabulary - 3)));
    }
  return prompts;
}

double seconds_of(model::Model& model, const tensor::Exec& exec, int64_t batch, int64_t new_tokens) {
  generate::EngineOptions options;
  options.service.exec = exec;
  const generate::SamplingParams greedy{.max_tokens = new_tokens, .temperature = 0, .ignore_eos = true};
  const auto prompts = prompts_of(batch, model.shape().vocabulary);
  const double begin = base::now_seconds();
  const auto completions = generate_all(model, prompts, greedy, options);
  const double seconds = base::now_seconds() - begin;
  for (const generate::Completion& c : completions)
    COLLIMATE_CHECK(static_cast<int64_t>(c.tokens.size()) == new_tokens);
  return seconds;
}

void measure(model::Model& model, const tensor::Exec& exec, int64_t batch, int repeats, nlohmann::ordered_json line) {
  seconds_of(model, exec, batch, 2);
  const double prefill = seconds_of(model, exec, batch, 1);
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) seconds.push_back(seconds_of(model, exec, batch, kNewTokens));
  const auto [least, largest] = std::minmax_element(seconds.begin(), seconds.end());
  line["batch"] = batch;
  line["s_min"] = *least;
  line["s_max"] = *largest;
  line["tok_s"] = static_cast<double>(batch * kNewTokens) / *least;
  line["prefill_s"] = prefill;
  line["peak_rss_mb"] = collimate::host::peak_resident_bytes() >> 20;
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "bench_decode MODEL_DIRECTORY [float32 or bfloat16] [repeats] [B …]\n");
    return 2;
  }
  const std::string compute = argc > 2 ? argv[2] : "float32";
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 3;
  std::vector<int64_t> batches;
  for (int i = 4; i < argc; ++i) batches.push_back(std::atoll(argv[i]));
  if (batches.empty()) batches = {1, 8, 32, 64};
  tensor::use_one_aten_thread();
  collimate::host::CorePool pool(collimate::host::core_count());
  const tensor::Exec exec{&pool};
  const double begin = base::now_seconds();
  model::Model model(model::load_huggingface(argv[1], "lm", {.compute = tensor::compute_type_of(compute)}, exec), exec);
  const double load = base::now_seconds() - begin;
  for (const int64_t batch : batches) measure(model, exec, batch, repeats, {{"compute", compute}, {"load_s", load}});
  return 0;
}
