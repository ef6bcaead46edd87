#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/tensor/results.h"
#include "tests/support/base/rounds.h"
#include "tests/support/generate/tiny_service.h"
#include "tests/support/model/cancelling_weights.h"
#include "tests/support/model/tiny_weights.h"
#include "tests/support/tensor/kernels/with_isa.h"

// One sweep draws jointly all that must not change a bit: company and order of requests, when they arrive, size of
// steps (so of prefill's pieces), blocks of the cache (so who is preempted, and where keys lie), prefix sharing,
// speculation, threads, instruction set; and for the scored and trained forward how samples are packed, beside what,
// with a prompt each or one for all, and recompute. In fp32 and both orders of bf16, with weights that cancel and
// without, with sums in chunks, and with adapters; what weights that cancel decide is the order of additions alone.
namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only

struct Variant {
  tensor::ComputeType compute;
  bool cancelling = false;
  int chunks = 1;  // of every sum of a linear layer
  bool lora = false;
  bool gpt2 = false;
  std::optional<tensor::KvType> kv_type = {};  // what the cache rounds to, and no other forward does
  bool latent = false;                         // attention, and what the cache keeps
};
using tensor::ComputeType;
constexpr Variant kVariants[] = {
    {ComputeType::kFloat32},
    {ComputeType::kFloat32, true},
    {ComputeType::kBFloat16Amx},
    {ComputeType::kBFloat16Amx, true},
    {ComputeType::kBFloat16Dot},
    {ComputeType::kBFloat16Dot, true},
    {.compute = ComputeType::kFloat32, .chunks = 4},
    {.compute = ComputeType::kBFloat16Dot, .chunks = 2},
    {.compute = ComputeType::kFloat32, .lora = true},
    {.compute = ComputeType::kBFloat16Amx, .lora = true},
    {ComputeType::kFloat32, true, 1, true},
    {ComputeType::kBFloat16Amx, true, 1, true},
    {ComputeType::kBFloat16Dot, true, 1, true},
    {ComputeType::kFloat32, true, 1, true, true},
    {ComputeType::kBFloat16Dot, true, 1, false, true},
    {.compute = ComputeType::kFloat32, .kv_type = tensor::KvType::kInt8},
    {.compute = ComputeType::kBFloat16Dot, .kv_type = tensor::KvType::kFp8},
    {.compute = ComputeType::kFloat32, .latent = true},
    {.compute = ComputeType::kBFloat16Amx, .lora = true, .latent = true},
    {.compute = ComputeType::kBFloat16Dot, .cancelling = true, .latent = true},
    {.compute = ComputeType::kBFloat16Dot, .kv_type = tensor::KvType::kInt8, .latent = true},
    {.compute = ComputeType::kFloat32, .kv_type = tensor::KvType::kFp8, .latent = true}};

std::string variant_name(const Variant& variant) {
  return fmt::format("{}{}, chunks: {}{}", tensor::name_of(variant.compute), variant.cancelling ? " cancelling" : "",
                     variant.chunks, variant.lora ? ", lora" : "") +
         (variant.gpt2     ? ", gpt2"
          : variant.latent ? ", latent"
                           : "") +
         (variant.kv_type ? ", rounded cache" : "");
}

shape::ModelShape shape_of(const Variant& variant) {
  shape::ModelShape shape = tiny_shape();
  if (variant.latent) {
    shape.family = "deepseek_v3";
    for (shape::Block& block : shape.blocks) {
      block.attention = {.heads = 4, .kv_heads = 4, .head_dim = 12, .rotary_dim = 4};
      block.attention.latent = {.q_rank = 12, .kv_rank = 16, .rope_dim = 4, .value_dim = 16, .cached = true};
    }
  }
  if (!variant.gpt2) return shape;
  shape.family = "gpt2";
  shape.learned_positions = true;
  for (shape::Block& block : shape.blocks) {
    block.norm = shape::NormKind::kLayer;
    block.attention = {.heads = 4, .kv_heads = 4, .head_dim = 8, .rotary = false, .bias = true, .output_bias = true};
    block.mlp = {block.mlp.intermediate, /*gated=*/false, shape::Activation::kGeluTanh, /*bias=*/true};
  }
  return shape;
}

struct TrainedModel {
  TrainedModel(const Variant& variant, tensor::Exec exec)
      : weights(
            std::make_shared<model::Weights>(shape_of(variant),
                                             model::WeightsOptions{.trained = true,
                                                                   .compute = variant.compute,
                                                                   .reduction_chunks = variant.chunks,
                                                                   .lora = {.rank = variant.lora ? 12 : 0, .alpha = 2}},
                                             exec)),
        model(weights, exec) {
    weights->initialize(1, 0.3F);
    if (variant.cancelling) model::testing::make_cancelling(*weights);
    weights->commit();
    if (variant.lora) model::testing::fill_adapters(*weights);
    if (variant.lora && variant.cancelling) model::testing::make_adapters_cancelling(*weights);
  }
  std::shared_ptr<model::Weights> weights;
  model::Model model;
};

// Three samples of each of six prompts of few words, some of them greedy, so that texts repeat and are speculated on.
std::vector<Request> sweep_requests() {
  std::vector<Request> requests = random_requests(18, 3);
  for (Request& request : requests) {
    for (int32_t& id : request.prompt) id = 3 + id % 4;
    if (request.uid % 3 == 0) request.params.temperature = 0;
    if (request.uid % 3 == 1) request.params.logit_bias = {{5, 8.0}, {6, 8.0}};
  }
  return requests;
}

// Samples packed for a forward.
struct PackedSamples {
  model::TokenBatch batch = {.ids = {}, .positions = {}, .starts = {0}, .continued = {}};
  std::map<int64_t, std::vector<int64_t>> predictors;  // by uid: of each drawn token, the row that predicts it

  // The row of the first of these tokens.
  int64_t add(std::span<const int32_t> ids, size_t position, int32_t continued = -1) {
    const auto row = static_cast<int64_t>(batch.ids.size());
    for (const int32_t id : ids) {
      batch.ids.push_back(id);
      batch.positions.push_back(static_cast<int32_t>(position++));
    }
    batch.starts.push_back(static_cast<int32_t>(batch.ids.size()));
    batch.continued.push_back(continued);
    return row;
  }
  void add_whole(const Request& request, const Result& result) {
    std::vector<int32_t> ids = request.prompt;
    ids.insert(ids.end(), result.tokens.begin(), result.tokens.end());
    const int64_t last = add(ids, 0) + static_cast<int64_t>(request.prompt.size()) - 1;
    for (size_t t = 0; t < result.tokens.size(); ++t) predictors[request.uid].push_back(last + static_cast<int64_t>(t));
  }
  // Samples of one prompt, which is there once.
  void add_shared(std::span<const Request> requests, const Results& results) {
    const auto& prompt = requests.front().prompt;
    const int64_t last = add(prompt, 0) + static_cast<int64_t>(prompt.size()) - 1;
    const auto whole = static_cast<int32_t>(batch.continued.size()) - 1;
    for (const Request& request : requests) {
      const auto& tokens = results.at(request.uid).tokens;
      const int64_t first = add(tokens, prompt.size(), whole);
      auto& rows = predictors[request.uid];
      rows.push_back(last);
      for (size_t t = 0; t + 1 < tokens.size(); ++t) rows.push_back(first + static_cast<int64_t>(t));
    }
  }
};

class Sweep {
 public:
  void run(uint32_t trial) {
    trial_ = trial;
    drawn_ = 0;
    const size_t number = trial % std::size(kVariants);
    const Results& reference = reference_of(number);
    const auto& sets = tensor::sets_here();
    const tensor::InstructionSet set = base::at(sets, random(sets.size()));
    const tensor::WithInstructionSet chosen(set);
    host::CorePool pool(1 + static_cast<int>(random(3)));
    const std::string where = fmt::format("trial {}: {}, {}, threads: {}", trial, variant_name(kVariants[number]),
                                          tensor::name_of(set), pool.threads());
    TrainedModel made(kVariants[number], {&pool});
    const std::vector<Request> company = random_company();
    const Results generated = generate(made.model, company, kVariants[number].kv_type, {&pool});
    for (const Request& request : company)
      EXPECT_EQ(generated.at(request.uid), reference.at(request.uid)) << where << ", uid " << request.uid;
    if (!kVariants[number].kv_type) expect_scored(made.model, reference, where);
  }

  ServiceStats total;  // of what the trials ran

 private:
  int64_t random(uint64_t below) { return static_cast<int64_t>(base::random_bits(41, 7, trial_, drawn_++) % below); }

  // Each request alone, on the oldest instruction set.
  const Results& reference_of(size_t variant) {
    Results& reference = references_[variant];
    if (reference.empty()) {
      const tensor::WithInstructionSet oldest(tensor::sets_here().front());
      TrainedModel made(kVariants[variant], {});
      reference = run_each(made.model, requests_, {.kv_type = kVariants[variant].kv_type, .seed = kSeed});
    }
    return reference;
  }

  std::vector<Request> random_company() {
    std::vector<Request> company = requests_;
    std::reverse(company.begin(), company.begin() + random(company.size()));
    std::rotate(company.begin(), company.begin() + random(company.size()), company.end());
    company.resize(1 + static_cast<size_t>(random(company.size())));
    return company;
  }

  // Submits the company in two parts, the second after some steps.
  Results generate(model::Model& model, std::span<const Request> company, std::optional<tensor::KvType> kv_type,
                   tensor::Exec exec) {
    ServiceOptions options{.kv_type = kv_type, .seed = kSeed};
    options.exec = exec;
    options.max_batch_tokens = 1 + random(random(2) == 0 ? 20 : 200);
    options.max_batch_sequences = 1 + random(18);
    options.cache_blocks = 7 + random(24);  // the longest request needs 7
    options.prefix_cache = random(2) == 0;
    options.speculation_tokens = random(12);
    options.speculation_rows = 2 + random(60);
    Service service(model, options);
    const auto early = static_cast<size_t>(random(company.size() + 1));
    if (early > 0) service.submit(to_batch(company.first(early)));
    Results results;
    for (int64_t step = random(9); step > 0 && service.step(); --step) collect(service, results);
    if (early < company.size()) service.submit(to_batch(company.subspan(early)));
    drain(service, results);
    const ServiceStats stats = service.stats();
    EXPECT_EQ(stats.blocks_used, 0);
    total.preemptions += stats.preemptions;
    total.shared_prompt_tokens += stats.shared_prompt_tokens;
    total.accepted_tokens += stats.accepted_tokens;
    return results;
  }

  // Some prompts' samples, in any order, whole or behind their prompt, with sequences of no sample between them.
  PackedSamples random_pack(const Results& reference) {
    PackedSamples packed;
    const size_t prompts = requests_.size() / 3, first = static_cast<size_t>(random(prompts));
    for (size_t i = 0; i < 1 + static_cast<size_t>(random(prompts)); ++i) {
      const auto samples = std::span(requests_).subspan((first + i) % prompts * 3, 3);
      if (random(2) == 0) packed.add(std::vector<int32_t>(static_cast<size_t>(1 + random(40)), 9), 0);
      if (random(2) == 0) {
        packed.add_shared(samples, reference);
      } else {
        for (const Request& request : samples) packed.add_whole(request, reference.at(request.uid));
      }
    }
    return packed;
  }

  at::Tensor random_forward(model::Model& model, const model::TokenBatch& batch) {
    const int64_t kind = random(3);
    if (kind == 0) return model.forward(batch);
    std::unique_ptr<model::ForwardRecord> record;
    return model.forward_train(batch, kind == 1 ? model::Recompute::kNone : model::Recompute::kFull, record);
  }

  void expect_scored(model::Model& model, const Results& reference, const std::string& where) {
    PackedSamples packed = random_pack(reference);
    const at::Tensor hidden = random_forward(model, packed.batch);
    for (const Request& request : requests_) {
      const auto found = packed.predictors.find(request.uid);
      if (found == packed.predictors.end()) continue;
      const Result& result = reference.at(request.uid);
      auto& rows = found->second;
      const at::Tensor index = at::from_blob(rows.data(), {static_cast<int64_t>(rows.size())}, at::kLong);
      const double temperature = request.params.temperature == 0 ? 1.0 : request.params.temperature;
      const auto scored = model.log_probs({.hidden = hidden.index_select(0, index),
                                           .targets = result.tokens,
                                           .temperature = static_cast<float>(temperature),
                                           .record = random(2) == 0});
      const tensor::HostTensor numbers({}, scored.log_probs);
      std::vector<uint32_t> bits(rows.size());
      std::memcpy(bits.data(), numbers.floats().data(), bits.size() * sizeof(bits[0]));
      EXPECT_EQ(bits, result.log_prob_bits) << where << ", scored uid " << request.uid;
    }
  }

  static constexpr uint64_t kSeed = 77;
  std::vector<Request> requests_ = sweep_requests();
  std::map<size_t, Results> references_;
  uint32_t trial_ = 0, drawn_ = 0;
};

TEST(Invariance, OneSetOfBitsHoweverAndWhereverItIsComputed) {
  Sweep sweep;
  for (uint32_t trial = 0; trial < base::rounds(120); ++trial) sweep.run(trial);
  EXPECT_GT(sweep.total.preemptions, 0);
  EXPECT_GT(sweep.total.shared_prompt_tokens, 0);
  EXPECT_GT(sweep.total.accepted_tokens, 0);
}

// The references differ: a variant that were another one in disguise would show nothing.
TEST(Invariance, EveryVariantIsItsOwn) {
  std::vector<Results> all;
  const auto requests = sweep_requests();
  for (const Variant& variant : kVariants) {
    TrainedModel made(variant, {});
    all.push_back(run_all(made.model, std::span(requests).first(3), {.kv_type = variant.kv_type, .seed = 77}));
    for (size_t i = 0; i + 1 < all.size(); ++i) EXPECT_NE(all[i], all.back()) << i;
  }
}

}  // namespace
}  // namespace collimate::generate
