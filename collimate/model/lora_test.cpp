// Adapters against the model that they are added to, against merged weights, and their gradients against those of
// whole weights. Equality of bits over every way to compute a row: parity_test.cpp.
#include "collimate/model/lora.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/memory_state.h"
#include "collimate/shape/family.h"
#include "tests/support/base/error_of.h"
#include "tests/support/model/edit_weights.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using namespace testing;  // NOLINT: test only

constexpr const char* kFamilies[] = {"llama", "qwen2", "gpt2", "qwen3", "phi3", "gpt_neox"};

// scale 1.5
const LoraOptions kSmall{.rank = 4, .alpha = 6};

WeightsOptions with(const LoraOptions& lora, ComputeType compute = ComputeType::kFloat32) {
  return {.trained = true, .compute = compute, .lora = lora};
}

TokenBatch tokens() { return pack(sequences({19, 5, 33}, 37)); }

double distance_of(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - b[i], 2);
  return std::sqrt(sum);
}

// A model of the same values with whole weights, adapters merged.
std::shared_ptr<Weights> merged(const Weights& weights) {
  auto whole =
      std::make_shared<Weights>(weights.shape(), WeightsOptions{true, weights.options().compute}, tensor::Exec{});
  std::vector<float> memory;
  for (size_t i = 0; i < whole->params().size(); ++i) {
    const auto values = merged_values(weights, static_cast<int>(i));
    std::copy(values.begin(), values.end(), testing::edit_of(*whole, static_cast<int>(i)).begin());
  }
  whole->commit();
  return whole;
}

TEST(Lora, BeginsAsTheModelItIsAddedTo) {
  for (const char* family : kFamilies)
    for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kBFloat16Dot, ComputeType::kBFloat16Amx}) {
      const shape::ModelShape shape = tiny_shape(family);
      auto weights = tiny_weights(shape, with(kSmall, compute));
      initialize_lora(*weights, 9);
      Model plain(tiny_weights(shape, {true, compute}), {}), adapted(weights, {});
      EXPECT_EQ(to_vector(adapted.forward(tokens())), to_vector(plain.forward(tokens()))) << family;
      testing::fill_adapters(*weights);
      EXPECT_NE(to_vector(adapted.forward(tokens())), to_vector(plain.forward(tokens()))) << family;
    }
}

TEST(Lora, MergedWeightsGiveNearlyTheSame) {
  const std::vector<std::pair<const char*, std::vector<std::string>>> cases = {
      {"llama", {"all-linear"}}, {"llama", {"q_proj", "v_proj"}}, {"llama", {"up_proj", "1.self_attn.o_proj"}},
      {"qwen2", {"k_proj"}},     {"gpt2", {"all-linear"}},        {"gpt2", {"mlp.c_proj", "c_attn"}}};
  for (const auto& [family, targets] : cases) {
    const LoraOptions lora{.rank = 4, .alpha = 6, .targets = targets};
    auto weights = tiny_weights(tiny_shape(family), with(lora));
    Model unfused(weights, {}), fused(merged(*weights), {}), plain(tiny_weights(tiny_shape(family)), {});
    const auto a = to_vector(unfused.forward(tokens())), b = to_vector(fused.forward(tokens()));
    const double apart = distance_of(a, b), moved = distance_of(a, to_vector(plain.forward(tokens())));
    EXPECT_LT(apart, 3e-5 * distance_of(a, std::vector<float>(a.size(), 0))) << family << " " << targets.front();
    EXPECT_GT(moved, 20 * apart) << family << " " << targets.front();
  }
}

TEST(Lora, TargetsAreNamedByTheLastPartsOfTheirNames) {
  const auto adapted = [](const char* family, const std::vector<std::string>& targets) {
    std::vector<std::string> names;
    for (const auto& spec : model_params(tiny_shape(family), {.rank = 2, .targets = targets}))
      if (spec.name.ends_with(".lora_B.weight")) names.push_back(spec.name);
    return names;
  };
  const std::string first = "base_model.model.model.layers.0.", second = "base_model.model.model.layers.1.";
  EXPECT_EQ(
      adapted("llama", {"v_proj", "down_proj"}),
      (std::vector<std::string>{first + "self_attn.v_proj.lora_B.weight", first + "mlp.down_proj.lora_B.weight",
                                second + "self_attn.v_proj.lora_B.weight", second + "mlp.down_proj.lora_B.weight"}));
  EXPECT_EQ(adapted("gpt2", {"attn.c_proj"}),
            (std::vector<std::string>{"base_model.model.transformer.h.0.attn.c_proj.lora_B.weight",
                                      "base_model.model.transformer.h.1.attn.c_proj.lora_B.weight"}));
  EXPECT_EQ(adapted("llama", {"all-linear"}).size(), 14U);
  EXPECT_EQ(adapted("mixtral", {"all-linear"}).size(), 8U) << "of attention alone";
  EXPECT_EQ(adapted("qwen2_moe", {"all-linear"}).size(), 15U) << "and of what all tokens pass, with its gate";
  EXPECT_EQ(adapted("gpt2", {"all-linear"}).size(), 8U);
  EXPECT_EQ(lora_targets(tiny_shape("gpt2"), {.rank = 2}), (std::vector<std::string>{"c_attn", "c_proj", "c_fc"}));
}

// Adapters that add nothing leave the gradients of modules that are trained whole those of a whole model.
TEST(Lora, SavedModulesHaveTheGradientsOfAWholeModel) {
  for (const char* family : {"llama", "gpt2"}) {
    const auto named = [&](const std::string& parameter) {
      return parameter.find(family == std::string("gpt2") ? "wte" : "embed_tokens") != std::string::npos ||
             parameter.find("lm_head") != std::string::npos || parameter.find("norm.weight") == 6;
    };
    LoraOptions lora = kSmall;
    lora.modules_to_save = family == std::string("gpt2") ? std::vector<std::string>{"wte"}
                                                         : std::vector<std::string>{"embed_tokens", "norm", "lm_head"};
    shape::ModelShape shape = tiny_shape(family);
    if (family == std::string("llama")) shape.tied_embeddings = false;
    auto adapted = tiny_weights(shape, with(lora)), whole = tiny_weights(shape);
    initialize_lora(*adapted, 9);
    for (const auto& weights : {adapted, whole}) {
      Model model(weights, {});
      std::unique_ptr<ForwardRecord> record;
      const at::Tensor hidden = model.forward_train(tokens(), Recompute::kFull, record);
      const LogProbRequest request{.hidden = hidden, .targets = tokens().ids, .record = true};
      const LogProbResult result = model.log_probs(request);
      model.backward(std::move(record),
                     model.log_probs_backward(request, {at::ones_like(result.log_probs)}, result.record));
    }
    int trained = 0;
    for (size_t i = 0; i < whole->params().size(); ++i) {
      const auto index = static_cast<int>(i);
      const std::string& name = whole->params()[i].name;
      EXPECT_EQ(adapted->trains(index), named(name)) << name;
      if (!adapted->trains(index)) continue;
      ++trained;
      const auto a = adapted->gradient_of(index), b = whole->gradient_of(index);
      EXPECT_EQ(std::vector<float>(a.begin(), a.end()), std::vector<float>(b.begin(), b.end())) << name;
    }
    EXPECT_EQ(trained, std::ssize(lora.modules_to_save)) << family;
  }
}

TEST(Lora, AModuleToSaveLiesOutsideTheBlocks) {
  const auto error = [](const std::string& name, const char* family) {
    return base::message_of([&] { tiny_weights(tiny_shape(family), with({.rank = 2, .modules_to_save = {name}})); });
  };
  EXPECT_EQ(error("q_proj", "llama"),
            "[lora.modules_to_save] expected one of embed_tokens, norm, got 'q_proj'; try 'norm'");
  EXPECT_EQ(error("lm_head", "gpt2"),
            "[lora.modules_to_save] expected one of wte, wpe, ln_f, got 'lm_head'; try 'ln_f'");
}

TEST(Lora, ATargetThatNamesNoLayerIsRefused) {
  const auto error = [](const std::vector<std::string>& targets, const char* family = "llama") -> std::string {
    try {
      tiny_weights(tiny_shape(family), with({.rank = 2, .targets = targets}));
    } catch (const base::InputError& refused) {
      return refused.what();
    }
    return "accepted";
  };
  EXPECT_EQ(error({"q_proj", "qproj"}),
            "[lora.targets] expected all-linear or one of q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, "
            "down_proj, got 'qproj'; try 'q_proj'");
  EXPECT_NE(error({"proj"}), "accepted") << "part of a word";
  EXPECT_NE(error({"lm_head"}), "accepted");
  EXPECT_NE(error({"input_layernorm"}), "accepted");
  EXPECT_EQ(error({"w1"}, "mixtral"),
            "[lora.targets] expected all-linear or one of q_proj, k_proj, v_proj, o_proj, got 'w1'");
  EXPECT_NE(error({"experts.0.up_proj"}, "qwen3_moe"), "accepted");
  EXPECT_NE(error({"mlp.gate"}, "qwen2_moe"), "accepted");
  EXPECT_EQ(error({"shared_expert_gate", "up_proj"}, "qwen2_moe"), "accepted");
}

TEST(Lora, ScaleIsThatOfAlphaAndRank) {
  EXPECT_EQ((LoraOptions{.rank = 16, .alpha = 8}.scale()), 0.5F);
  EXPECT_EQ((LoraOptions{.rank = 16, .alpha = 8, .rslora = true}.scale()), 2.0F);
}

// Uniform in ±1 / √in: standard deviation 1 / √(3 in).
TEST(Lora, InitialValuesAreThoseOfKaimingUniform) {
  auto weights = tiny_weights(tiny_shape("llama"), with({.rank = 64}));
  initialize_lora(*weights, 1);
  const uint64_t before = weights->checksum();
  for (size_t i = weights->own_params(); i < weights->params().size(); ++i) {
    const auto values = weights->values(static_cast<int>(i));
    const auto& spec = weights->params()[i];
    double square = 0, most = 0;
    for (const float value : values) square += double{value} * value, most = std::max(most, std::abs(double{value}));
    const double bound = spec.name.ends_with("lora_A.weight") ? 1 / std::sqrt(static_cast<double>(spec.sizes[1])) : 0;
    EXPECT_LE(most, bound * 1.0001) << spec.name;
    EXPECT_NEAR(std::sqrt(3 * square / static_cast<double>(values.size())), bound, 0.06 * bound) << spec.name;
  }
  initialize_lora(*weights, 1);
  EXPECT_EQ(weights->checksum(), before);
  initialize_lora(*weights, 2);
  EXPECT_NE(weights->checksum(), before);
}

// The gradient of L = Σ a·log p(target), left in the weights.
void add_gradient(Model& model, Recompute recompute = Recompute::kNone) {
  const TokenBatch batch = tokens();
  std::vector<int32_t> targets;
  for (size_t i = 0; i < batch.ids.size(); ++i) targets.push_back(static_cast<int32_t>((i * 11 + 3) % 37));
  std::unique_ptr<ForwardRecord> record;
  const at::Tensor hidden = model.forward_train(batch, recompute, record);
  const at::Tensor a = on_device((at::arange(hidden.size(0), at::kFloat) * 0.7).sin());
  model.backward(std::move(record), model.log_probs_backward({hidden, targets}, {a}));
}

at::Tensor gradient_of(Weights& weights, const std::string& name) {
  return testing::gradient_of(weights, weights.index_of(name)).to(at::kDouble);
}
at::Tensor values_of(Weights& weights, const std::string& name) {
  return testing::values_of(weights, weights.index_of(name)).to(at::kDouble);
}

void expect_near(const at::Tensor& mine, const at::Tensor& expected, const std::string& what) {
  const double norm = expected.norm().item<double>();
  EXPECT_GT(norm, 1e-3) << what;
  EXPECT_LE((mine - expected).norm().item<double>(), 1e-4 * norm) << what;
}

// For y = (W + s B A) x it holds that dB = s dW A^T and dA = s B^T dW, where dW is the gradient of the whole, merged
// weight.
TEST(Lora, GradientsAreThoseOfTheMergedWeights) {
  for (const char* family : kFamilies) {
    const shape::ModuleNames& names = shape::find_family(family, "").names;
    const std::string& last = names.query_key_value.back();
    const size_t layers = names.query_key_value.size() + names.up.size() + 2;
    for (const std::string& target : {std::string("all-linear"), last.substr(last.find('.') + 1)}) {
      const LoraOptions lora{.rank = 4, .alpha = 6, .targets = {target}};
      auto weights = tiny_weights(tiny_shape(family), with(lora));
      auto whole = merged(*weights);
      Model unfused(weights, {}), fused(whole, {});
      add_gradient(unfused);
      add_gradient(fused);
      size_t compared = 0;
      for (const auto& spec : whole->params()) {
        if (spec.sizes.size() != 2) continue;  // a bias has its layer's name too
        const auto adapter = fmt::format("base_model.model.{}", spec.name.substr(0, spec.name.rfind('.')));
        const std::string a = adapter + ".lora_A.weight", b = adapter + ".lora_B.weight";
        if (weights->index_of(b) < 0) continue;
        const at::Tensor dw = gradient_of(*whole, spec.name) * 1.5;
        expect_near(gradient_of(*weights, b), dw.matmul(values_of(*weights, a).t()), b);
        expect_near(gradient_of(*weights, a), values_of(*weights, b).t().matmul(dw), a);
        ++compared;
      }
      EXPECT_EQ(compared, (target == "all-linear" ? layers : 1) * 2) << family;
    }
  }
}

// A step along the gradient of the adapters, which is left in the weights, changes the loss by its squared norm.
void expect_slope_of(const std::function<double()>& loss, Weights& weights) {
  const auto gradient = weights.gradient(4);
  const double squares = std::transform_reduce(gradient.begin(), gradient.end(), 0.0, std::plus<>(),
                                               [](float g) { return double{g} * g; });
  const auto shift = [&](double step) {
    for (size_t i = 0; i < gradient.size(); ++i) weights.master(4)[i] += static_cast<float>(step * gradient[i]);
    weights.commit();
    return loss();
  };
  const double step = 2e-3 / std::sqrt(squares);
  const double up = shift(step), down = shift(-2 * step);
  EXPECT_NEAR((up - down) / (2 * step) / squares, 1.0, 0.02);
}

TEST(Lora, GradientsMatchFiniteDifferences) {
  auto weights = tiny_weights(tiny_shape("llama"), with(kSmall));
  Model model(weights, {});
  const TokenBatch batch = tokens();
  const std::vector<int32_t> targets(batch.ids.size(), 7);
  const auto loss = [&] { return model.log_probs({model.forward(batch), targets}).log_probs.sum().item<double>(); };
  std::unique_ptr<ForwardRecord> record;
  const at::Tensor hidden = model.forward_train(batch, Recompute::kFull, record);
  model.backward(std::move(record),
                 model.log_probs_backward({hidden, targets}, {on_device(at::ones({hidden.size(0)}))}));
  expect_slope_of(loss, *weights);
}

// Training with noise: its hidden states, and behind a backward its gradients.
at::Tensor train_noisily(Model& model, const TokenBatch& batch, Recompute recompute = Recompute::kNone) {
  std::unique_ptr<ForwardRecord> record;
  const at::Tensor hidden = model.forward_train(batch, recompute, record);
  const std::vector<int32_t> targets(batch.ids.size(), 7);
  model.backward(std::move(record),
                 model.log_probs_backward({hidden, targets}, {on_device(at::ones({hidden.size(0)}))}));
  return hidden;
}

TEST(Lora, DropoutIsOfTrainingAloneAndOfItsKeys) {
  LoraOptions lora = kSmall;
  lora.dropout = 0.4;
  for (const char* family : {"llama", "gpt2", "mixtral"}) {
    const auto weights = tiny_weights(tiny_shape(family), with(lora)),
               plain = tiny_weights(tiny_shape(family), with(kSmall));
    Model model(weights, {}), other(plain, {});
    EXPECT_EQ(to_vector(model.forward(tokens())), to_vector(other.forward(tokens()))) << family;
    const auto first = to_vector(train_noisily(model, noisy(tokens(), 1)));
    const auto gradients = all_gradients(*weights);
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      weights->zero_gradients();
      EXPECT_EQ(to_vector(train_noisily(model, noisy(tokens(), 1), recompute)), first) << family;
      EXPECT_EQ(all_gradients(*weights), gradients) << family;
    }
    EXPECT_NE(to_vector(train_noisily(model, noisy(tokens(), 2))), first) << family;
    EXPECT_NE(to_vector(other.forward(tokens())), first) << family;
  }
}

// The loss is that of these draws.
TEST(Lora, GradientsOfDropoutMatchFiniteDifferences) {
  LoraOptions lora = kSmall;
  lora.dropout = 0.4;
  const auto weights = tiny_weights(tiny_shape("llama"), with(lora));
  Model model(weights, {});
  const TokenBatch batch = noisy(tokens());
  const std::vector<int32_t> targets(batch.ids.size(), 7);
  const auto loss = [&] {
    std::unique_ptr<ForwardRecord> record;
    return model.log_probs({model.forward_train(batch, Recompute::kFull, record), targets})
        .log_probs.sum()
        .item<double>();
  };
  train_noisily(model, batch);
  expect_slope_of(loss, *weights);
}

TEST(Lora, TheModelsOwnParametersHaveNoGradient) {
  for (const char* head : {"lm", "score"}) {
    shape::ModelShape shape = tiny_shape("qwen2");
    shape.head = shape::parse_head(head);
    auto weights = tiny_weights(shape, with(kSmall));
    for (size_t i = 0; i < weights->params().size(); ++i) {
      const std::string& name = weights->params()[i].name;
      const bool trained = i >= weights->own_params() || name == "score.weight";
      EXPECT_EQ(weights->param_gradient(static_cast<int>(i)) != nullptr, trained) << name;
    }
    const bool scores = shape.head == shape::Head::kScore;
    EXPECT_EQ(weights->changing_segments(), scores ? std::vector<int>({3, 4}) : std::vector<int>({4}));
    for (int s = 0; s < 3; ++s) EXPECT_TRUE(weights->gradient(s).empty()) << s;
  }
}

// A head of zeros passes nothing down, so it is trained with the adapters.
TEST(Lora, AScoreHeadIsTrainedToo) {
  shape::ModelShape shape = tiny_shape("llama");
  shape.head = shape::Head::kScore;
  auto weights = tiny_weights(shape, with(kSmall));
  Model model(weights, {});
  std::unique_ptr<ForwardRecord> record;
  const at::Tensor hidden = model.forward_train(tokens(), Recompute::kNone, record);
  const at::Tensor down = model.scores_backward(hidden, on_device(at::ones({hidden.size(0)})));
  model.backward(std::move(record), down);
  EXPECT_GT(gradient_of(*weights, "score.weight").norm().item<double>(), 0.1);
  EXPECT_EQ(weights->param_gradient(weights->index_of("model.norm.weight")), nullptr);
}

TEST(Lora, PanelsOfFrozenWeightsStayPacked) {
  auto weights = tiny_weights(tiny_shape("llama"), with(kSmall));
  Model model(weights, {});
  const auto before = to_vector(model.forward(tokens()));
  const int own = weights->index_of("model.layers.0.mlp.down_proj.weight");
  const int adapter = weights->index_of("base_model.model.model.layers.0.mlp.down_proj.lora_A.weight");
  for (float& value : weights->master(4)) value *= 1.5F;  // an update of the adapters …
  EXPECT_NO_THROW(weights->panels(own));
  EXPECT_THROW(weights->panels(adapter), base::GuardError);  // … that nobody committed
  weights->commit();
  EXPECT_EQ(weights->panels(own).version, weights->version());
  EXPECT_NE(to_vector(model.forward(tokens())), before);
  const auto adapted = to_vector(model.forward(tokens()));
  for (float& value : weights->master(1)) value *= 1.5F;  // other values of the model itself are noticed all the same
  EXPECT_THROW(weights->panels(own), base::GuardError);
  weights->commit();
  EXPECT_NE(to_vector(model.forward(tokens())), adapted);
}

// A checkpoint holds adapters alone: the model's own values are those that it was opened with.
TEST(Lora, SaveAndLoad) {
  auto first = tiny_weights(tiny_shape("llama"), with(kSmall));
  first->commit(17);
  base::MemoryState state;
  first->save(state);
  EXPECT_FALSE(state.has("weights.0"));
  EXPECT_FALSE(state.has("weights.3"));
  auto second = tiny_weights(tiny_shape("llama"), with(kSmall));
  initialize_lora(*second, 21);
  EXPECT_NE(second->checksum(), first->checksum());
  second->load(state);
  EXPECT_EQ(second->version(), 17U);
  EXPECT_EQ(second->checksum(), first->checksum());
}

}  // namespace
}  // namespace collimate::model
