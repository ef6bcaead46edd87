#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "collimate/base/lower_case.h"
#include "collimate/base/named.h"
#include "collimate/shape/outline.h"

namespace collimate::shape {
namespace {

// Columns are name, layers, hidden, heads, kv heads, head dim, intermediate and vocabulary. The numbers are those of
// each model's published config.json; gpt3-175b (below) is from Brown et al. 2020, table 2.1.
std::vector<Outline> gated_models() {
  return {{"qwen2.5-0.5b", 24, 896, 14, 2, 64, 4864, 151936, true, true},
          {"qwen2.5-1.5b", 28, 1536, 12, 2, 128, 8960, 151936, true, true},
          {"qwen2.5-3b", 36, 2048, 16, 2, 128, 11008, 151936, true, true},
          {"llama2-7b", 32, 4096, 32, 32, 128, 11008, 32000},
          {"qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, 152064},
          {"qwen3-8b", 36, 4096, 32, 8, 128, 12288, 151936},
          {"llama3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256},
          {"llama2-13b", 40, 5120, 40, 40, 128, 13824, 32000},
          {"qwen2.5-14b", 48, 5120, 40, 8, 128, 13824, 152064},
          {"qwen2.5-32b", 64, 5120, 40, 8, 128, 27648, 152064},
          {"qwen3-32b", 64, 5120, 64, 8, 128, 25600, 151936},
          {"llama-33b", 60, 6656, 52, 52, 128, 17920, 32000},
          {"codellama-34b", 48, 8192, 64, 8, 128, 22016, 32000},
          {"llama-65b", 80, 8192, 64, 64, 128, 22016, 32000},
          {"llama2-70b", 80, 8192, 64, 8, 128, 28672, 32000},
          {"llama3.1-70b", 80, 8192, 64, 8, 128, 28672, 128256},
          {"qwen2.5-72b", 80, 8192, 64, 8, 128, 29568, 152064},
          {"llama3.1-405b", 126, 16384, 128, 8, 128, 53248, 128256}};
}

Outline opt(const char* name, int64_t layers, int64_t hidden, int64_t heads, int64_t vocabulary = 50272) {
  return {name, layers, hidden, heads, heads, hidden / heads, 4 * hidden, vocabulary, false, true, 2048};
}

std::vector<Outline> plain_models() {
  return {opt("opt-125m", 12, 768, 12),          opt("opt-350m", 24, 1024, 16), opt("opt-1.3b", 24, 2048, 32),
          opt("opt-2.7b", 32, 2560, 32),         opt("opt-6.7b", 32, 4096, 32), opt("opt-13b", 40, 5120, 40),
          opt("opt-30b", 48, 7168, 56),          opt("opt-66b", 64, 9216, 72),  opt("opt-175b", 96, 12288, 96),
          opt("gpt3-175b", 96, 12288, 96, 50257)};
}

// DeepSeek's attention makes keys and values of 128 channels from a latent of 512; beside each key lie 64 rotated ones.
Outline latent(const char* name, int64_t layers, int64_t hidden, int64_t heads, int64_t intermediate,
               int64_t vocabulary, Experts experts, int64_t dense_layers, int64_t q_rank) {
  Outline made{name, layers, hidden, heads, heads, 128 + 64, intermediate, vocabulary};
  made.experts = experts;
  made.dense_layers = dense_layers;
  made.latent = {q_rank, 512, 64, 128};
  return made;
}

std::vector<Outline> expert_models() {
  return {latent("moonlight-16b-a3b", 27, 2048, 16, 11264, 163840, {64, 6, 1408, 2816}, 1, 0),
          {"qwen3-30b-a3b", 48, 2048, 32, 4, 128, 6144, 151936, true, false, 0, {128, 8, 768, 0}},
          {"mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, 32000, true, false, 0, {8, 2, 14336, 0}},
          {"qwen3-235b-a22b", 94, 4096, 64, 4, 128, 12288, 151936, true, false, 0, {128, 8, 1536, 0}},
          latent("deepseek-v3", 61, 7168, 128, 18432, 129280, {256, 8, 2048, 2048}, 3, 1536),
          latent("kimi-k2", 61, 7168, 64, 18432, 163840, {384, 8, 2048, 2048}, 1, 1536)};
}

const std::vector<Outline>& outlines() {
  static const std::vector<Outline> kModels = [] {
    std::vector<Outline> all = gated_models();
    for (const auto& more : {plain_models(), expert_models()}) all.insert(all.end(), more.begin(), more.end());
    std::stable_sort(all.begin(), all.end(),
                     [](const Outline& a, const Outline& b) { return total_parameters(a) < total_parameters(b); });
    return all;
  }();
  return kModels;
}

// These are other names under which papers mention models of the table.
constexpr std::pair<const char*, const char*> kAliases[] = {
    {"qwen330b3a", "qwen3-30b-a3b"},    {"qwen330b", "qwen3-30b-a3b"},  {"qwen3235b", "qwen3-235b-a22b"},
    {"moonlight", "moonlight-16b-a3b"}, {"qwen2vl72b", "qwen2.5-72b"},  {"qwen2572b", "qwen2.5-72b"},
    {"deepseekv3671b", "deepseek-v3"},  {"qwen25math7b", "qwen2.5-7b"}, {"llama38b", "llama3.1-8b"},
    {"llama370b", "llama3.1-70b"},      {"deepseekr1", "deepseek-v3"},  {"qwen2515b", "qwen2.5-1.5b"}};

}  // namespace

std::vector<std::string> outline_names() { return base::names_of(outlines()); }

const Outline* outline_named(const std::string& name) {
  for (const Outline& model : outlines())  // points first, because opt-13b is not opt-1.3b
    if (base::plain_name(model.name, ".") == base::plain_name(name, ".")) return &model;
  std::string wanted = base::plain_name(name);
  for (const auto& [alias, target] : kAliases)
    if (wanted == alias) wanted = base::plain_name(target);
  for (const Outline& model : outlines())
    if (base::plain_name(model.name) == wanted) return &model;
  return nullptr;
}

// The proportions are LLaMA's: hidden = 128 layers, as far as both are multiples of their steps, and an MLP of 8/3
// hidden, so that there are about 12 layers hidden² parameters.
std::optional<Outline> sized_outline(const std::string& name) {
  double billions = 0;
  int end = 0;
  if (std::sscanf(name.c_str(), "dense-%lfb%n", &billions, &end) != 1 || end != static_cast<int>(name.size()) ||
      !(billions >= kLeastDense && billions <= kMostDense))
    return std::nullopt;
  const double parameters = billions * 1e9;
  Outline made{name};
  made.heads = std::max<int64_t>(8, 8 * std::llround(std::cbrt(parameters / (12.0 * 128 * 128)) / 8));
  made.kv_heads = made.heads;
  made.head_dim = 128;
  made.hidden = 128 * made.heads;
  made.intermediate = made.hidden * 8 / 3 / 64 * 64;
  made.vocabulary = 32000;
  const double layer = 12 * static_cast<double>(made.hidden) * static_cast<double>(made.hidden);
  made.layers = std::max<int64_t>(4, 4 * std::llround(parameters / layer / 4));
  return made;
}

}  // namespace collimate::shape
