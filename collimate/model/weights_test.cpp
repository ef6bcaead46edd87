#include "collimate/model/weights.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/memory_state.h"
#include "collimate/model/rounding.h"
#include "tests/support/base/error_of.h"
#include "tests/support/model/edit_weights.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using testing::pack;
using testing::tiny_shape;
using testing::tiny_weights;
using testing::to_vector;

std::map<std::string, int64_t> items(const Weights& weights) {
  std::map<std::string, int64_t> all;
  for (const MemoryItem& item : weights.memory()) all[item.purpose] = item.bytes;
  return all;
}

// A model's arrays take this by its parameters: every value once, every linear layer's panels once.
struct ArrayBytes {
  explicit ArrayBytes(const Weights& weights) {
    const auto& params = weights.params();
    for (const int64_t floats : shape::segment_floats(params)) values += floats * static_cast<int64_t>(sizeof(float));
    for (size_t i = 0; i < params.size(); ++i) {
      const bool tied_head = i == 0 && weights.shape().tied_embeddings;
      if (params[i].fused == 0 || (params[i].kind != shape::ParamKind::kLinear && !tied_head)) continue;
      const int64_t rows = shape::fused_rows(params, static_cast<int64_t>(i));
      panels += tensor::packed_bytes({}, rows, params[i].sizes[1], weights.options().compute, 1);
    }
  }
  int64_t values = 0, panels = 0;
};

// A trained model beside it shows what would be counted.
TEST(Weights, AFrozenModelOwnsItsValuesAndPanelsOnceAndNothingElse) {
  for (const char* family : {"llama", "qwen2", "gpt2"})
    for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kBFloat16Dot}) {
      auto frozen = tiny_weights(tiny_shape(family), {false, compute});
      auto trained = tiny_weights(tiny_shape(family), {true, compute});
      for (const auto& weights : {frozen, trained, frozen}) {  // a second pass packs nothing more
        Model model(weights, {});
        model.logits(model.forward(pack({{1, 2, 3}})));
      }
      const ArrayBytes bytes(*frozen);
      EXPECT_GT(bytes.panels, bytes.values / 3) << family;
      const std::map<std::string, int64_t> of_frozen = {{"values", bytes.values}, {"panels", bytes.panels}};
      const std::map<std::string, int64_t> of_trained = {
          {"master", bytes.values}, {"gradient", bytes.values}, {"panels", bytes.panels}};
      for (int s = 0; s < trained->segments(); ++s) trained->segment_gradient(s);  // first use
      EXPECT_EQ(items(*frozen), of_frozen) << family;
      EXPECT_EQ(items(*trained), of_trained) << family;
    }
}

TEST(Weights, Int8IsNotTrained) {
  EXPECT_EQ(
      base::message_of([&] { tiny_weights(tiny_shape("llama"), {.trained = true, .compute = ComputeType::kInt8}); }),
      "[weights of model] expected float32 or bfloat16 to train, got int8");
}

// Rounded weights are near the given ones, and so are the logits.
TEST(Weights, Int8RoundsLittleAway) {
  for (const char* family : {"llama", "qwen2", "gpt2"}) {
    Model whole(tiny_weights(tiny_shape(family), {}), {});
    Model rounded(tiny_weights(tiny_shape(family), {.compute = ComputeType::kInt8}), {});
    const RoundingReport report = int8_rounding({}, rounded.weights());
    EXPECT_GT(report.relative, 1e-3) << family;
    EXPECT_LT(report.relative, 0.01) << family;
    EXPECT_GE(report.most, report.relative) << family;
    EXPECT_GE(rounded.weights().index_of(report.most_of), 0) << family;
    const auto logits = [](Model& model) { return to_vector(model.logits(model.forward(pack({{1, 2, 3, 4, 5}})))); };
    const std::vector<float> a = logits(whole), b = logits(rounded);
    double difference = 0, norm = 0;
    for (size_t i = 0; i < a.size(); ++i) difference += std::pow(double{a[i]} - b[i], 2), norm += std::pow(a[i], 2);
    const double relative = std::sqrt(difference / norm);
    EXPECT_GT(relative, 0) << family;
    EXPECT_LT(relative, 0.05) << family;
  }
}

TEST(Weights, AFrozenModelHasNoGradientAndIsNotTrained) {
  auto frozen = tiny_weights(tiny_shape("llama"), {false});
  for (int s = 0; s < frozen->segments(); ++s) EXPECT_TRUE(frozen->gradient(s).empty());
  EXPECT_EQ(frozen->param_gradient(2), nullptr);
  Model model(frozen, {});
  std::unique_ptr<ForwardRecord> record;
  EXPECT_THROW(model.forward_train(pack({{1, 2}}), Recompute::kNone, record), std::logic_error);
}

TEST(Weights, SegmentsAreAlignedAndShared) {
  auto weights = tiny_weights(tiny_shape("gpt2"));
  for (int s = 0; s < weights->segments(); ++s)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(weights->segment_values(s).data()) % 64, 0U);
  const int index = weights->index_of("transformer.h.1.mlp.c_fc.bias");
  const auto& spec = base::at(weights->params(), index);
  EXPECT_EQ(weights->param(index), weights->segment_values(2).data() + spec.offset);
  EXPECT_EQ(weights->index_of("no such"), -1);
}

// A mark in a panel stays until the version changes.
TEST(Weights, PanelsArePackedOnceAVersion) {
  const auto weights = tiny_weights(tiny_shape("llama"));
  Model model(weights, {});
  const int layer = weights->index_of("model.layers.0.mlp.down_proj.weight");
  const auto first = [&] { return tensor::HostEdit({}, static_cast<float*>(weights->panels(layer).data), 1); };
  constexpr float kMark = 123.0F;
  model.forward(pack({{1, 2, 3}}));
  first()[0] = kMark;
  model.forward(pack({{1, 2, 3}}));
  weights->pack_all();
  EXPECT_EQ(first()[0], kMark);
  weights->commit();
  EXPECT_NE(first()[0], kMark);
}

TEST(Weights, StalePanelsAreNoticed) {
  auto weights = tiny_weights(tiny_shape("llama"));
  const int index = weights->index_of("model.layers.0.mlp.down_proj.weight");
  EXPECT_EQ(weights->panels(index).version, weights->version());
  weights->commit(40);
  const_cast<tensor::LinearPanels&>(weights->panels(index)).version = 39;  // as no code of ours leaves them
  EXPECT_THROW(weights->panels(index), base::GuardError);
  weights->commit();
  EXPECT_EQ(weights->panels(index).version, 41U);
  for (float& value : weights->master(1)) value *= 1.5F;  // an update that nobody commits
  EXPECT_THROW(weights->panels(index), base::GuardError);
  weights->commit();
  EXPECT_EQ(weights->panels(index).version, 42U);
}

// Parameters are packed side by side; a change of any one is noticed.
TEST(Weights, AnUpdateOfOneFusedParameterThatNobodyCommitsIsNoticed) {
  auto weights = tiny_weights(tiny_shape("llama"));
  const std::string layer = "model.layers.1.";
  const std::map<std::string, std::vector<std::string>> packed = {
      {"self_attn.q_proj.weight", {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"}},
      {"mlp.gate_proj.weight", {"mlp.gate_proj.weight", "mlp.up_proj.weight"}}};
  for (const auto& [first, names] : packed)
    for (const std::string& name : names) {
      const int index = weights->index_of(layer + first), changed = weights->index_of(layer + name);
      ASSERT_GE(changed, index);
      EXPECT_NO_THROW(weights->panels(index));
      for (float& value : testing::edit_of(*weights, changed)) value += 1e-3F;
      EXPECT_THROW(weights->panels(index), base::GuardError) << name;
      weights->commit();
      EXPECT_NO_THROW(weights->panels(index)) << name;
    }
}

// A weight link brings them, of a later version or, when a run begins, of the same.
TEST(Weights, ValuesTakenOverReachTheForwardUnderTheirOwnVersion) {
  for (const uint64_t ahead : {0U, 5U}) {
    auto source = tiny_weights(tiny_shape("llama")), destination = tiny_weights(tiny_shape("llama"), {false});
    for (int s = 0; s < source->segments(); ++s)
      for (float& value : source->master(s)) value *= 1.25F;
    source->commit(source->version() + ahead);
    Model model(destination, {});
    const auto before = to_vector(model.forward(pack({{1, 2, 3}})));
    for (int s = 0; s < source->segments(); ++s) {
      const tensor::HostEdit from = source->master(s);
      std::copy(from.begin(), from.end(), destination->master(s).begin());
    }
    destination->commit(source->version());
    EXPECT_EQ(destination->version(), source->version());
    const auto after = to_vector(model.forward(pack({{1, 2, 3}})));
    EXPECT_NE(after, before);
    EXPECT_EQ(after, to_vector(Model(source, {}).forward(pack({{1, 2, 3}}))));
  }
}

TEST(Weights, UpdatesReachTheForward) {
  auto weights = tiny_weights(tiny_shape("llama"));
  Model model(weights, {});
  const auto before = to_vector(model.forward(pack({{1, 2, 3}})));
  for (float& value : weights->master(2)) value *= 0.5F;
  weights->commit();
  EXPECT_NE(to_vector(model.forward(pack({{1, 2, 3}}))), before);
}

TEST(Weights, SaveAndLoad) {
  auto first = tiny_weights(tiny_shape("qwen2"));
  first->commit(17);
  base::MemoryState state;
  first->save(state);
  auto second = std::make_shared<Weights>(tiny_shape("qwen2"), WeightsOptions{}, tensor::Exec{});
  EXPECT_NE(second->checksum(), first->checksum());
  Model model(second, {});
  model.forward(pack({{1}}));  // packs panels of the values before
  second->load(state);
  EXPECT_EQ(second->version(), 17U);
  EXPECT_EQ(second->checksum(), first->checksum());
  first->commit();
  EXPECT_EQ(to_vector(model.forward(pack({{1, 4}}))), to_vector(Model(first, {}).forward(pack({{1, 4}}))));
}

// Ranks that have pieces of the model save what the whole model would, and the other way round.
TEST(Weights, AnyTensorRanksLoadWhatOthersSaved) {
  for (const char* family : {"llama", "gpt2", "qwen2_moe"}) {
    const shape::ModelShape shape = tiny_shape(family);
    auto whole = tiny_weights(shape);
    base::MemoryState of_one, of_two;
    whole->save(of_one);
    for (int r = 0; r < 2; ++r) {
      Weights mine(shape, {.ranks = {.tensor = {{}, {r, 2}}}}, {});
      mine.load(of_one);
      base::MemoryState own;
      mine.save(own);
      if (r == 0) of_two = own;
      of_two.add_tensors_of(own, fmt::format("rank {}", r));
    }
    Weights again(shape, {}, {});
    EXPECT_NE(again.checksum(), whole->checksum());
    again.load(of_two);
    EXPECT_EQ(again.checksum(), whole->checksum()) << family;
  }
}

TEST(Weights, AnotherComputeTypeThanTheSavedOneIsRefused) {
  base::MemoryState state;
  Weights(tiny_shape("llama"), {.compute = ComputeType::kBFloat16Amx}, {}).save(state);
  Weights other(tiny_shape("llama"), {.compute = ComputeType::kBFloat16Dot, .tag = "policy"}, {});
  EXPECT_EQ(base::message_of([&] { other.load(state); }),
            "[weights of policy] expected those of compute bfloat16_amx, got bfloat16_dot; try compute: "
            "bfloat16_amx to continue with the same bits");
}

TEST(Weights, InitialValuesDependOnSeedAndNameAlone) {
  auto first = tiny_weights(tiny_shape("llama")), second = tiny_weights(tiny_shape("llama"));
  EXPECT_EQ(first->checksum(), second->checksum());
  second->initialize(4, 0.3F);
  EXPECT_NE(first->checksum(), second->checksum());
  const auto values = second->values(second->index_of("model.embed_tokens.weight"));
  double sum = 0, square = 0;
  for (const float value : values) {
    sum += value;
    square += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(sum / static_cast<double>(values.size()), 0, 0.04);
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(values.size())), 0.3, 0.02);
  const auto swap_two = [&] {
    const tensor::HostEdit first_segment = second->master(0);
    std::swap(first_segment[0], first_segment[1]);
  };
  swap_two();
  const uint64_t swapped = second->checksum();
  swap_two();
  EXPECT_NE(second->checksum(), swapped);
}

}  // namespace
}  // namespace collimate::model
