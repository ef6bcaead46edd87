#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/memory_state.h"
#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/generate/service.h"
#include "collimate/model/model.h"
#include "collimate/model/weights.h"
#include "collimate/tensor/results.h"
#include "collimate/text/tokenizer.h"
#include "tests/support/generate/sampling_fields.h"
#include "tests/support/model/pack_sequences.h"

// The tests of this folder share a small random model, requests, and a state in memory.
namespace collimate::generate::testing_support {

inline shape::ModelShape tiny_shape() {
  shape::ModelShape shape;
  shape.family = "llama";
  shape.vocabulary = 61;
  shape.hidden = 32;
  shape::Block block;
  block.attention = {.heads = 4, .kv_heads = 2, .head_dim = 8};
  block.mlp = {.intermediate = 48};
  shape.blocks = {block, block};
  shape.max_positions = 160;
  shape.eos_ids = {2};
  return shape;
}

// A model of random weights, large enough that draws differ from request to request.
struct TinyModel {
  explicit TinyModel(uint64_t seed = 1, tensor::Exec exec = {},
                     model::ComputeType compute = model::ComputeType::kFloat32)
      : weights(std::make_shared<model::Weights>(tiny_shape(), model::WeightsOptions{.compute = compute}, exec)),
        model(weights, exec) {
    weights->initialize(seed, 0.3F);
  }
  std::shared_ptr<model::Weights> weights;
  model::Model model;
};

// A tokenizer whose tokens are the given bytes, "<eos>" a special one. It only decodes.
class PieceTokenizer : public text::Tokenizer {
 public:
  explicit PieceTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}

  std::vector<int32_t> encode(std::string_view, text::EncodeOptions) const override { return {}; }
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const override {
    std::string text;
    for (const int32_t id : ids) text += skip_special && is_special(id) ? "" : token_bytes(id);
    return text;
  }
  std::string token_bytes(int32_t id, text::TokenPlace = {}) const override { return pieces_.at(id); }
  bool is_special(int32_t id) const override { return pieces_.at(id) == "<eos>"; }
  std::optional<int32_t> id_of(std::string_view) const override { return std::nullopt; }
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  void save(const std::string&) const override {}

 private:
  std::vector<std::string> pieces_;
};

// Makes a tokenizer for the tiny model, of the same few pieces many times.
inline PieceTokenizer tiny_tokenizer(const std::vector<std::string>& some) {
  std::vector<std::string> pieces;
  for (size_t id = 0; id < 61; ++id) pieces.push_back(id == 2 ? "<eos>" : some[id % some.size()]);
  return PieceTokenizer(pieces);
}

struct Request {
  int64_t uid = 0;
  int64_t prompt_uid = 0;
  std::vector<int32_t> prompt;
  SamplingParams params;
};

inline Batch to_batch(std::span<const Request> requests) {
  std::vector<int64_t> uids, prompt_uids;
  std::vector<std::vector<int32_t>> ids;
  std::vector<nlohmann::json> sampling;
  for (const Request& request : requests) {
    uids.push_back(request.uid);
    prompt_uids.push_back(request.prompt_uid);
    ids.push_back(request.prompt);
    sampling.push_back(request.params.to_json());
  }
  Batch batch(static_cast<int64_t>(requests.size()));
  batch.set(batch::kUid, uids);
  batch.set(batch::kPromptUid, prompt_uids);
  batch.set_ragged(batch::kIds, ids);
  batch.set_json(batch::kSampling, sampling);
  return batch;
}

// `count` requests, `samples` for each prompt, with prompts of 1 to 50 tokens, lengths of 1 to 60 and every kind of
// draw.
inline std::vector<Request> random_requests(int64_t count, int64_t samples, uint64_t seed = 5) {
  std::vector<Request> requests;
  for (int64_t i = 0; i < count; ++i) {
    Request request;
    request.uid = 100 + i;
    request.prompt_uid = i / samples;
    const auto prompt_bits = [&](uint32_t what) {
      return base::random_bits(seed, 1, static_cast<uint64_t>(request.prompt_uid), what);
    };
    request.prompt.resize(1 + prompt_bits(0) % 50);
    for (uint32_t t = 0; t < request.prompt.size(); ++t) {
      request.prompt[t] = static_cast<int32_t>(prompt_bits(1 + t) % 61);
    }
    const auto bits = [&](uint32_t what) { return base::random_bits(seed, 2, static_cast<uint64_t>(i), what); };
    request.params.max_tokens = 1 + static_cast<int64_t>(bits(0) % 60);
    request.params.temperature = bits(1) % 4 == 0 ? 0.0 : 0.5 + 0.25 * static_cast<double>(bits(1) % 3);
    request.params.top_k = bits(2) % 2 == 0 ? 0 : 10;
    request.params.top_p = bits(3) % 2 == 0 ? 1.0 : 0.9;
    request.params.ignore_eos = bits(4) % 2 == 0;
    requests.push_back(request);
  }
  return requests;
}

// Gives every third request, from its uid on, another value of a field that all have at its default; not of the time
// limit, as here no clock decides, and not of what contradicts others.
inline void vary_if_nobody_does(const SamplingField& field, std::vector<Request>& requests) {
  const auto at_default = [&](const Request& request) {
    const SamplingParams defaults;
    return std::visit([&](const auto& member) { return request.params.*member.at == defaults.*member.at; },
                      field.member);
  };
  if (field.name == std::string_view("timeout_seconds") || is_form(field) || !std::ranges::all_of(requests, at_default))
    return;
  for (Request& request : requests) {
    if (request.uid % 3 != 0) continue;
    nlohmann::json params = request.params.to_json();
    params[field.name] = other_value(field);
    request.params = SamplingParams::from_json(params);
  }
}

// Makes completions what tiny_tokenizer's pieces can be, of each of them something.
inline void constrain(SamplingParams& params) {
  params.regex = "(?:ab|é|c+)*(?:ba){1,3}";
  params.min_tokens = 0;
  params.ignore_eos = false;
}

// These have penalties, biases, min_tokens, stop strings and what they have to be, each its own mixture, and of every
// field of kSamplingFields more than one value.
inline std::vector<Request> mixed_requests(int64_t count, int64_t samples) {
  std::vector<Request> requests = random_requests(count, samples);
  for (Request& request : requests) {
    uint32_t drawn = 0;
    const auto random = [&](uint64_t below) {
      return static_cast<int64_t>(base::random_bits(11, 3, static_cast<uint64_t>(request.uid), drawn++) % below);
    };
    SamplingParams& params = request.params;
    if (random(2) == 0) params.presence_penalty = 0.25 * static_cast<double>(random(17)) - 2;
    if (random(2) == 0) params.frequency_penalty = 0.25 * static_cast<double>(random(17)) - 2;
    if (random(2) == 0) params.repetition_penalty = 0.5 + 0.25 * static_cast<double>(random(6));
    if (random(2) == 0) params.logit_bias = {{static_cast<int32_t>(random(61)), 2.0}, {2, 1.0}};
    if (random(2) == 0) params.min_tokens = random(static_cast<uint64_t>(std::min<int64_t>(params.max_tokens, 20)));
    if (random(2) == 0) params.stop = {"abba", "é", "caab"};
    if (random(4) == 0) params.seed = static_cast<uint64_t>(random(100));
    if (random(2) == 0) params.top_log_probs = random(kMostTopLogProbs + 1);
  }
  for (const SamplingField& field : kSamplingFields) vary_if_nobody_does(field, requests);
  for (Request& request : requests) {
    if (request.uid % 5 == 0) constrain(request.params);
  }
  return requests;
}

// A Result is what came out of a service for one request. Log-probs are bits, so that == compares bits.
struct Result {
  std::vector<int32_t> tokens;
  std::vector<uint32_t> log_prob_bits;
  std::vector<std::pair<int32_t, uint32_t>> top;  // ids and bits of the most likely tokens
  std::vector<int64_t> versions;
  Finish finish = Finish::kRunning;
  bool operator==(const Result&) const = default;
};
using Results = std::map<int64_t, Result>;

inline void collect(Service& service, Results& results) {
  for (const Emission& emission : service.take()) {
    Result& result = results[emission.uid];
    COLLIMATE_CHECK(result.finish == Finish::kRunning, "an emission after the last one");
    result.tokens.insert(result.tokens.end(), emission.tokens.begin(), emission.tokens.end());
    result.versions.insert(result.versions.end(), emission.versions.begin(), emission.versions.end());
    for (const float log_prob : emission.log_probs) result.log_prob_bits.push_back(std::bit_cast<uint32_t>(log_prob));
    for (const TokenLogProb& one : emission.top_log_probs) {
      result.top.emplace_back(one.token, std::bit_cast<uint32_t>(one.log_prob));
    }
    result.finish = emission.finish;
  }
}

inline void drain(Service& service, Results& results) {
  while (service.step()) collect(service, results);
  collect(service, results);
}

struct Outcome {
  Results results;
  ServiceStats stats;
};

// Runs a service of these requests and gives what it has counted at the end too.
inline Outcome run_counted(model::Model& model, std::span<const Request> requests, const ServiceOptions& options) {
  Service service(model, options);
  service.submit(to_batch(requests));
  Outcome outcome;
  drain(service, outcome.results);
  outcome.stats = service.stats();
  return outcome;
}

inline Results run_all(model::Model& model, std::span<const Request> requests, const ServiceOptions& options) {
  return run_counted(model, requests, options).results;
}

// Saves a service of these requests after so many steps. Takes what it has drawn after every second step, and gives
// what it has counted.
inline ServiceStats save_after(int steps, model::Model& model, std::span<const Request> requests,
                               const ServiceOptions& options, Results& results, base::MemoryState& state) {
  Service service(model, options);
  service.submit(to_batch(requests));
  for (int step = 0; step < steps; ++step) {
    service.step();
    if (step % 2 == 0) collect(service, results);
  }
  service.save(state);
  return service.stats();
}

// Gives all results of a service that was saved after so many steps and loaded by another one, which ran to the end.
inline Results results_over_a_load(int steps, model::Model& model, std::span<const Request> requests,
                                   const ServiceOptions& options) {
  Results results;
  base::MemoryState state;
  save_after(steps, model, requests, options, results, state);
  Service service(model, options);
  service.load(state);
  EXPECT_GT(service.running(), 0);
  drain(service, results);
  return results;
}

// All requests become samples of the first one's prompt.
inline void share_one_prompt(std::vector<Request>& requests) {
  for (Request& request : requests) {
    request.prompt = requests[0].prompt;
    request.prompt_uid = 0;
  }
}

// One of the first `below` numbers, by trial and purpose.
inline int64_t random_below(uint32_t trial, uint32_t what, uint64_t below) {
  return static_cast<int64_t>(base::random_bits(trial, 9, 9, what) % below);
}

// The number of a trial decides these: in how large batches, from how many blocks and with or without shared
// prefixes requests run, and in which order they come.
struct AnyBatch {
  AnyBatch(uint32_t trial, std::vector<Request> requests, const ServiceOptions& base)
      : order(std::move(requests)), options(base) {
    options.max_batch_tokens = trial == 0 ? 2048 : 1 + random_below(trial, 0, 120);
    options.max_batch_sequences = 1 + random_below(trial, 1, order.size());
    options.cache_blocks = 7 + random_below(trial, 2, 40);  // the longest request needs 7
    options.prefix_cache = random_below(trial, 3, 2) == 0;
    std::reverse(order.begin(), order.begin() + random_below(trial, 4, order.size()));
  }
  std::vector<Request> order;
  ServiceOptions options;
};

// Runs each request alone in an engine without any sharing.
inline Results run_each(model::Model& model, std::span<const Request> requests, ServiceOptions options) {
  options.prefix_cache = false;
  Results results;
  for (const Request& request : requests) results.merge(run_all(model, {&request, 1}, options));
  return results;
}

// A tiny model, requests to it, and the options of a service for them.
class WithRequests : public testing::Test {
 protected:
  explicit WithRequests(std::vector<Request> requests) : requests_(std::move(requests)) { options_.seed = 77; }

  const Results& alone() {
    if (alone_.empty()) alone_ = run_each(tiny_.model, requests_, options_);
    return alone_;
  }

  TinyModel tiny_;
  ServiceOptions options_;
  std::vector<Request> requests_;
  Results alone_;
};

// So many of the mixed requests, three for each prompt.
template <int64_t kCount>
class WithMixedRequests : public WithRequests {
 protected:
  WithMixedRequests() : WithRequests(mixed_requests(kCount, 3)) { options_.tokenizer = &tokenizer_; }

  PieceTokenizer tokenizer_ = tiny_tokenizer({"a", "b", "ab", "\xC3", "\xA9", "c", "ba"});
};

// Asks scoring what it gives in the places of the result's tokens, with the `top_count` most likely tokens of each.
inline auto scored(model::Model& model, const Request& request, const Result& result, int64_t top_count = 0) {
  std::vector<int32_t> ids = request.prompt;
  ids.insert(ids.end(), result.tokens.begin(), result.tokens.end());
  const std::span<const int32_t> whole(ids);
  const at::Tensor hidden = model.forward(model::pack_sequences({&whole, 1}));
  const auto first = static_cast<int64_t>(request.prompt.size()) - 1;
  const double temperature = request.params.temperature == 0 ? 1.0 : request.params.temperature;
  return model.log_probs({.hidden = hidden.slice(0, first, hidden.size(0) - 1).contiguous(),
                          .targets = result.tokens,
                          .temperature = static_cast<float>(temperature),
                          .top_count = top_count});
}

// Log-probs of the result's tokens as scoring computes them, as bits.
inline std::vector<uint32_t> scored_bits(model::Model& model, const Request& request, const Result& result) {
  const tensor::HostTensor log_probs({}, scored(model, request, result).log_probs);
  std::vector<uint32_t> bits(result.tokens.size());
  std::memcpy(bits.data(), log_probs.floats().data(), bits.size() * sizeof(bits[0]));
  return bits;
}

// Each result's log-probs are the bits that scoring computes.
inline void expect_scored(model::Model& model, std::span<const Request> requests, const Results& results) {
  for (const Request& request : requests) {
    const Result& result = results.at(request.uid);
    EXPECT_EQ(scored_bits(model, request, result), result.log_prob_bits) << "uid " << request.uid;
  }
}

}  // namespace collimate::generate::testing_support
