// Measures the tokens per second of generation, prefill included, as the peers' decode scripts do: B greedy completions
// of 128 tokens, from prompts of 64 tokens.
//   bench_decode MODEL_DIRECTORY [float32, bfloat16 or int8] [repeats] [B …] [--speculation TOKENS] [--period TOKENS]
//                [--samples N] [--long-tail PLACES]
// --speculation adds a second side, measured in turns with the first, that guesses so many tokens ahead; its tokens
// must be the same.
// --period lets prompts repeat themselves after so many tokens. --samples draws so many completions of each prompt (B
// counts completions). --long-tail measures 64 requests instead, whose lengths are drawn from a log-normal distribution
// and of which so many run at once; "utilisation" is the share of places that got a token, over the steps while
// requests waited.
// Each batch and side prints one line of JSON: least, median and largest seconds over the repeats (after one warm-up;
// all repeats use one service, which already has its key-value cache, as with the peers), tokens per second of the
// best, prompt tokens that were run and their GFLOP, and memory. The line also has the seconds of prefill alone, of
// loading, and from the process's start until a first token, that is, with weights packed.
#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/models.h"
#include "collimate/base/at.h"
#include "collimate/base/deadline.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/generate/service.h"
#include "collimate/host/cpu.h"
#include "collimate/host/memory.h"
#include "collimate/model/model.h"
#include "collimate/shape/param_spec.h"
#include "collimate/tensor/aten_threads.h"

namespace {

namespace base = collimate::base;
namespace batch = collimate::batch;
namespace bench = collimate::bench;
namespace generate = collimate::generate;
namespace host = collimate::host;
namespace model = collimate::model;
namespace tensor = collimate::tensor;
using Line = nlohmann::ordered_json;

constexpr int64_t kPromptTokens = 64, kNewTokens = 128, kTailRequests = 64, kLongestTail = 512;

struct Setting {
  std::string directory, compute = "float32";
  int repeats = 3;
  std::vector<int64_t> batches;
  int64_t speculation = 0, period = 0, samples = 1, places = 0;
};

struct Loaded {
  std::unique_ptr<model::Model> model;
  tensor::Exec exec;
  Line about;  // fields that every line begins with
};

int64_t whole_number(const std::string& word, const std::string& where) {
  const bool fits = !word.empty() && word.size() < 10 && word.find_first_not_of("0123456789") == std::string::npos;
  if (!fits || std::stoll(word) < 1) throw base::InputError(base::expectation(where, "a whole number above 0", word));
  return std::stoll(word);
}

Setting read(std::vector<std::string> words) {
  Setting s;
  const std::vector<std::pair<std::string, int64_t*>> options = {{"--speculation", &s.speculation},
                                                                 {"--period", &s.period},
                                                                 {"--samples", &s.samples},
                                                                 {"--long-tail", &s.places}};
  for (const auto& [name, value] : options) {
    const auto at = std::find(words.begin(), words.end(), name);
    if (at == words.end()) continue;
    *value = whole_number(at + 1 == words.end() ? "nothing" : at[1], name);
    words.erase(at, at + 2);
  }
  if (words.empty()) throw base::InputError(base::expectation("bench_decode", "a model's directory first", "none"));
  s.directory = words[0];
  if (words.size() > 1) s.compute = words[1];
  if (words.size() > 2) s.repeats = static_cast<int>(whole_number(words[2], "repeats"));
  for (size_t i = 3; i < words.size(); ++i) s.batches.push_back(whole_number(words[i], "B"));
  if (s.batches.empty()) s.batches = {1, 8, 32, 64};
  for (const int64_t b : s.batches)
    if (b % s.samples != 0)
      throw base::InputError(
          base::expectation("B", fmt::format("a multiple of --samples {}", s.samples), fmt::to_string(b)));
  return s;
}

std::vector<std::vector<int32_t>> prompts_of(int64_t count, int64_t vocabulary, int64_t period) {
  std::vector<std::vector<int32_t>> prompts(static_cast<size_t>(count));
  uint64_t draw = 1;
  for (std::vector<int32_t>& prompt : prompts)
    for (int64_t t = 0; t < kPromptTokens; ++t) {
      draw = draw * 6364136223846793005U + 1442695040888963407U;
      const auto fresh = static_cast<int32_t>(3 + (draw >> 33) % static_cast<uint64_t>(vocabulary - 3));
      prompt.push_back(period > 0 && t >= period ? base::at(prompt, t - period) : fresh);
    }
  return prompts;
}

// Returns greedy requests with one row for each of `lengths`, its number of new tokens. Each prompt is repeated equally
// often, one row after another.
collimate::Batch requests_of(const std::vector<std::vector<int32_t>>& prompts, const std::vector<int64_t>& lengths) {
  const size_t rows = lengths.size(), samples = rows / prompts.size();
  std::vector<int64_t> uids, prompt_uids;
  std::vector<std::vector<int32_t>> ids;
  std::vector<nlohmann::json> sampling;
  for (size_t row = 0; row < rows; ++row) {
    uids.push_back(static_cast<int64_t>(row));
    prompt_uids.push_back(static_cast<int64_t>(row / samples));
    ids.push_back(prompts[row / samples]);
    sampling.push_back(
        generate::SamplingParams{.max_tokens = lengths[row], .temperature = 0, .ignore_eos = true}.to_json());
  }
  collimate::Batch requests(static_cast<int64_t>(rows));
  requests.set(batch::kUid, uids);
  requests.set(batch::kPromptUid, prompt_uids);
  requests.set_ragged(batch::kIds, ids);
  requests.set_json(batch::kSampling, sampling);
  return requests;
}

struct Run {
  double seconds = 0;
  generate::ServiceStats stats;              // steps and tokens are of this run
  std::vector<std::vector<int32_t>> tokens;  // of each request
};

// A Side is one way of generating, with its measurements.
struct Side {
  int64_t guesses = 0;
  std::unique_ptr<generate::Service> service = nullptr;  // the same for all repeats, as in a program that keeps running
  std::vector<double> seconds = {};
  Run last = {};
};

std::unique_ptr<generate::Service> service_of(const Loaded& loaded, const Setting& s, int64_t completions,
                                              int64_t guesses) {
  generate::ServiceOptions options;
  options.exec = loaded.exec;
  options.speculation_tokens = guesses;
  options.max_batch_sequences = completions;
  options.max_sequence_tokens = kPromptTokens + kNewTokens;
  options.prefix_cache = s.samples > 1;
  return std::make_unique<generate::Service>(*loaded.model, options);
}

// Generates one batch. If samples share prompts, it does so with a new service, because the one of the run before would
// have those prompts in its cache.
Run generate_batch(const Loaded& loaded, const Setting& s, int64_t completions, int64_t new_tokens, Side& side) {
  Run run{.tokens = std::vector<std::vector<int32_t>>(static_cast<size_t>(completions))};
  const collimate::Batch requests =
      requests_of(prompts_of(completions / s.samples, loaded.model->shape().vocabulary, s.period),
                  std::vector<int64_t>(static_cast<size_t>(completions), new_tokens));
  const double begin = base::now_seconds();
  if (!side.service || s.samples > 1) side.service = service_of(loaded, s, completions, side.guesses);
  const generate::ServiceStats before = side.service->stats();
  side.service->submit(requests);
  while (side.service->step())
    for (const generate::Emission& e : side.service->take())
      base::at(run.tokens, e.uid).insert(base::at(run.tokens, e.uid).end(), e.tokens.begin(), e.tokens.end());
  run.seconds = base::now_seconds() - begin;
  run.stats = side.service->stats();
  run.stats.steps -= before.steps;
  run.stats.prefill_tokens -= before.prefill_tokens;
  run.stats.shared_prompt_tokens -= before.shared_prompt_tokens;
  run.stats.proposed_tokens -= before.proposed_tokens;
  run.stats.accepted_tokens -= before.accepted_tokens;
  for (const auto& tokens : run.tokens) COLLIMATE_CHECK(static_cast<int64_t>(tokens.size()) == new_tokens);
  return run;
}

void add_seconds(Line& line, const std::vector<double>& seconds, int64_t tokens) {
  const bench::Spread spread = bench::spread_of(seconds);
  line["s_min"] = spread.least;
  line["s_med"] = spread.median;
  line["s_max"] = spread.largest;
  line["tok_s"] = static_cast<double>(tokens) / spread.least;
}

void add_guesses(Line& line, const generate::ServiceStats& stats) {
  line["steps"] = stats.steps;
  line["proposed"] = stats.proposed_tokens;
  line["accepted"] = stats.accepted_tokens;
  line["acceptance"] = stats.proposed_tokens == 0
                           ? 0.0
                           : static_cast<double>(stats.accepted_tokens) / static_cast<double>(stats.proposed_tokens);
}

void print(Line line, int64_t weight_bytes) {
  const auto mb = [](int64_t bytes) { return static_cast<double>(bytes) / 1048576.0; };
  const int64_t peak = host::peak_resident_bytes();
  line["peak_rss_mb"] = mb(peak);
  line["peak_minus_weights_mb"] = mb(peak - weight_bytes);
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

// Returns the bytes of the weights in a file of the compute type.
int64_t weight_bytes(const Loaded& loaded, const std::string& compute) {
  const int64_t each = compute == "float32" ? 4 : compute == "int8" ? 1 : 2;
  int64_t parameters = 0;
  for (const collimate::shape::ParamSpec& spec : param_specs(loaded.model->shape())) parameters += spec.count();
  return each * parameters;
}

void measure(const Loaded& loaded, const Setting& s, int64_t completions) {
  std::vector<Side> sides(s.speculation > 0 ? 2 : 1);
  if (s.speculation > 0) sides[1].guesses = s.speculation;
  for (Side& side : sides) generate_batch(loaded, s, completions, kNewTokens, side);
  const Run prefill = generate_batch(loaded, s, completions, 1, sides[0]);
  for (int i = 0; i < s.repeats; ++i)
    for (Side& side : sides) {
      side.last = generate_batch(loaded, s, completions, kNewTokens, side);
      side.seconds.push_back(side.last.seconds);
    }
  for (const Side& side : sides) {
    COLLIMATE_CHECK(side.last.tokens == sides[0].last.tokens, "guesses {}", side.guesses);
    Line line = loaded.about;
    line["batch"] = completions;
    add_seconds(line, side.seconds, completions * kNewTokens);
    line["prefill_s"] = prefill.seconds;
    line["prefill_tokens"] = prefill.stats.prefill_tokens;
    line["shared_prompt_tokens"] = prefill.stats.shared_prompt_tokens;
    const double prompts = static_cast<double>(prefill.stats.prefill_tokens) / kPromptTokens;
    line["prefill_gflop"] = bench::flops_of(loaded.model->shape(), prompts, 0, kPromptTokens, 1) / 1e9;
    line["speculation"] = side.guesses;
    add_guesses(line, side.last.stats);
    print(line, weight_bytes(loaded, s.compute));
  }
}

// Returns the new tokens of each request from a log-normal distribution, of which half is below 64 and a sixth above
// 174. They are clamped to the range from 4 to 512, or to what the model has room for.
std::vector<int64_t> tail_lengths(int64_t positions) {
  std::mt19937_64 draws(1);
  std::lognormal_distribution<double> length(std::log(64.0), 1.0);
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < kTailRequests; ++i)
    lengths.push_back(
        std::clamp<int64_t>(std::llround(length(draws)), 4, std::min(kLongestTail, positions - kPromptTokens)));
  return lengths;
}

struct TailRun {
  double seconds = 0, utilisation = 0;
  generate::ServiceStats stats;
};

TailRun run_tail(const Loaded& loaded, const Setting& s, const std::vector<int64_t>& lengths, int64_t speculation) {
  generate::ServiceOptions options;
  options.exec = loaded.exec;
  options.speculation_tokens = speculation;
  options.max_batch_sequences = s.places;
  options.max_sequence_tokens = kPromptTokens + *std::max_element(lengths.begin(), lengths.end());
  const collimate::Batch requests =
      requests_of(prompts_of(kTailRequests, loaded.model->shape().vocabulary, s.period), lengths);
  int64_t taken = 0, places = 0;
  const double begin = base::now_seconds();
  generate::Service service(*loaded.model, options);
  service.submit(requests);
  while (true) {
    const bool waiting = service.running() > s.places;
    if (!service.step()) break;
    const auto drawn = static_cast<int64_t>(service.take().size());
    if (waiting) taken += drawn, places += s.places;
  }
  TailRun run{.seconds = base::now_seconds() - begin, .stats = service.stats()};
  run.utilisation = places == 0 ? 1.0 : static_cast<double>(taken) / static_cast<double>(places);
  return run;
}

void measure_tail(const Loaded& loaded, const Setting& s) {
  const std::vector<int64_t> lengths = tail_lengths(loaded.model->shape().max_positions);
  int64_t tokens = 0;
  for (const int64_t length : lengths) tokens += length;
  std::vector<int64_t> guesses = {0};
  if (s.speculation > 0) guesses.push_back(s.speculation);
  std::vector<std::vector<double>> seconds(guesses.size());
  std::vector<TailRun> last(guesses.size());
  for (int i = 0; i <= s.repeats; ++i)
    for (size_t side = 0; side < guesses.size(); ++side) {
      last[side] = run_tail(loaded, s, lengths, guesses[side]);
      if (i > 0) seconds[side].push_back(last[side].seconds);
    }
  for (size_t side = 0; side < guesses.size(); ++side) {
    Line line = loaded.about;
    line["requests"] = kTailRequests;
    line["places"] = s.places;
    line["new_tokens"] = tokens;
    add_seconds(line, seconds[side], tokens);
    line["utilisation"] = last[side].utilisation;
    line["preemptions"] = last[side].stats.preemptions;
    line["speculation"] = guesses[side];
    add_guesses(line, last[side].stats);
    print(line, weight_bytes(loaded, s.compute));
  }
}

// Returns the seconds since the system started this process: field 22 of proc(5)'s stat, in ticks.
double seconds_since_start() {
  std::ifstream stat("/proc/self/stat");
  std::string text, word;
  std::getline(stat, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));  // begins with the third field
  for (int field = 3; field <= 22; ++field) fields >> word;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         std::stod(word) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Loads the model and lets it draw one token, which packs all weights.
Loaded load(const Setting& s, const tensor::Exec& exec) {
  Loaded loaded;
  loaded.exec = exec;
  const double begin = base::now_seconds();
  loaded.model = std::make_unique<model::Model>(
      model::load_huggingface(s.directory, "lm", {.compute = tensor::compute_type_of(s.compute), .mapped = true}, exec),
      exec);
  const double load_seconds = base::now_seconds() - begin;
  Setting one = s;
  one.samples = 1;
  Side once;
  generate_batch(loaded, one, 1, 1, once);
  const auto mb = [](int64_t bytes) { return static_cast<double>(bytes) / 1048576.0; };
  const int64_t bytes = weight_bytes(loaded, s.compute), idle = host::resident_bytes();
  int64_t held = 0;
  for (const auto& item : loaded.model->weights().memory()) held += item.bytes;
  loaded.about = {{"compute", s.compute},
                  {"load_s", load_seconds},
                  {"ready_s", seconds_since_start()},
                  {"weights_mb", mb(bytes)},
                  {"held_weights_mb", mb(held)},
                  {"idle_rss_mb", mb(idle)},
                  {"idle_minus_weights_mb", mb(idle - bytes)}};
  return loaded;
}

void run(const std::vector<std::string>& words) {
  const Setting setting = read(words);
  tensor::use_one_aten_thread();
  host::CorePool pool(host::core_count());
  const Loaded loaded = load(setting, {&pool});
  if (setting.places > 0) {
    measure_tail(loaded, setting);
    return;
  }
  for (const int64_t completions : setting.batches) measure(loaded, setting, completions);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
