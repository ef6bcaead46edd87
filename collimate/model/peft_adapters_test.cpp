#include "collimate/model/peft_adapters.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"
#include "collimate/model/huggingface_check.h"
#include "collimate/model/peft.h"
#include "tests/support/base/error_of.h"
#include "tests/support/model/raw_safetensors.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using testing::RawTensor;
using testing::tiny_shape;
using testing::tiny_weights;

constexpr const char* kQuery = "base_model.model.model.layers.0.self_attn.q_proj";

// The files of adapters of rank 4 of a tiny llama.
class PeftAdaptersTest : public testing::InDirectory {
 protected:
  void SetUp() override { save(tiny_shape("llama"), {.rank = 4, .alpha = 6, .targets = {"q_proj", "down_proj"}}); }

  std::string base() const { return directory_ + "/base"; }
  std::string adapter() const { return directory_ + "/adapter"; }

  void save(const shape::ModelShape& shape, const LoraOptions& lora) {
    weights_ = tiny_weights(shape, {.trained = true, .lora = lora});
    save_huggingface(*tiny_weights(shape), base());
    save_peft(*weights_, adapter(), base());
    config_ = nlohmann::json::parse(host::read_file(adapter() + "/adapter_config.json"));
    tensors_.clear();
    const auto file = open_tensor_file(adapter() + "/adapter_model.safetensors");
    for (const TensorEntry& entry : file->entries())
      tensors_[entry.name] = {
          entry.name, entry.dtype, entry.sizes, {reinterpret_cast<const char*>(entry.data.data()), entry.data.size()}};
  }

  // Gives what loading and checking say of the files as they are now; the directory as D, the config as C.
  std::string error_of(const WeightsOptions& options = {}) const {
    host::write_file_atomically(adapter() + "/adapter_config.json", config_.dump());
    std::vector<RawTensor> tensors;
    for (const auto& [name, tensor] : tensors_) tensors.push_back(tensor);
    testing::write_raw_safetensors(adapter() + "/adapter_model.safetensors", tensors);
    const std::string loading = error_in([&] { load_huggingface(adapter(), "", options, {}); });
    EXPECT_EQ(error_in([&] { check_huggingface(adapter(), "", options); }), loading);
    return loading;
  }
  template <class Step>
  std::string error_in(const Step& step) const {
    try {
      step();
    } catch (const base::InputError& error) {
      std::string text = error.what();
      for (const auto& [place, name] :
           {std::pair(adapter() + "/adapter_config.json", "C"), std::pair(adapter(), "A"), std::pair(directory_, "D")})
        for (size_t at = text.find(place); at != std::string::npos; at = text.find(place))
          text.replace(at, place.size(), name);
      return text;
    }
    return "loaded";
  }
  std::string error_with(const char* key, const nlohmann::json& value) {
    const nlohmann::json before = config_;
    config_[key] = value;
    const std::string error = error_of();
    config_ = before;
    return error;
  }

  std::shared_ptr<Weights> weights_;
  nlohmann::json config_;
  std::map<std::string, RawTensor> tensors_;
};

TEST_F(PeftAdaptersTest, WhatIsSavedIsMergedAsTheWholeModelIs) {
  for (const char* family : {"llama", "gpt2", "gpt_neox", "bloom", "gptj"}) {
    save(tiny_shape(family), {.rank = 3, .alpha = 5, .rslora = true});
    save_huggingface(*weights_, directory_ + "/merged");
    const auto wanted = load_huggingface(directory_ + "/merged", "", {}, {})->checksum();
    EXPECT_EQ(load_huggingface(adapter(), "", {}, {})->checksum(), wanted) << family;
    EXPECT_EQ(load_huggingface(adapter(), "", {.mapped = true}, {})->checksum(), wanted) << family;
    const WeightsOptions on{.trained = true, .lora = PeftAdapters(adapter()).options()};
    EXPECT_EQ(load_huggingface(adapter(), "", on, {})->checksum(), weights_->checksum()) << family;
  }
}

TEST_F(PeftAdaptersTest, SoAreDorasWithTheirLengths) {
  for (const char* family : {"llama", "gpt2", "gpt_neox", "bloom", "gptj"}) {
    save(tiny_shape(family), {.rank = 3, .alpha = 5, .dora = true});
    save_huggingface(*weights_, directory_ + "/merged");
    const auto wanted = load_huggingface(directory_ + "/merged", "", {}, {})->checksum();
    EXPECT_EQ(load_huggingface(adapter(), "", {}, {})->checksum(), wanted) << family;
    EXPECT_EQ(load_huggingface(adapter(), "", {.mapped = true}, {})->checksum(), wanted) << family;
    const WeightsOptions on{.trained = true, .lora = PeftAdapters(adapter()).options()};
    EXPECT_EQ(load_huggingface(adapter(), "", on, {})->checksum(), weights_->checksum()) << family;
  }
}

TEST_F(PeftAdaptersTest, ARowIsReadMerged) {
  save(tiny_shape("llama"), {.rank = 3});
  const auto whole = load_huggingface(adapter(), "", {}, {});
  const auto mapped = load_huggingface(adapter(), "", {.mapped = true}, {});
  for (size_t i = 0; i < whole->params().size(); ++i) {
    const shape::ParamSpec& spec = whole->params()[i];
    if (spec.sizes.size() < 2) continue;
    std::vector<float> wanted(static_cast<size_t>(spec.sizes[1])), row = wanted;
    whole->read(static_cast<int>(i), 1, wanted);
    mapped->read(static_cast<int>(i), 1, row);
    EXPECT_EQ(row, wanted) << spec.name;
  }
}

TEST_F(PeftAdaptersTest, AScoreHeadComesWithThem) {
  shape::ModelShape shape = tiny_shape("llama");
  shape.head = shape::Head::kScore;
  save(shape, {.rank = 2});
  save_huggingface(*tiny_weights(tiny_shape("llama")), base());  // which has no such head
  const auto merged = load_huggingface(adapter(), "score", {}, {});
  const auto head = merged->values(merged->index_of("score.weight"));
  const auto own = weights_->values(weights_->index_of("score.weight"));
  EXPECT_TRUE(std::equal(head.begin(), head.end(), own.begin()));
  const WeightsOptions on{.trained = true, .lora = PeftAdapters(adapter()).options()};
  EXPECT_EQ(load_huggingface(adapter(), "score", on, {})->checksum(), weights_->checksum());
  EXPECT_EQ(error_of(),
            "[A score.weight] expected a parameter of the model, untied if it is a head, got none of that "
            "name");
}

TEST_F(PeftAdaptersTest, OtherKindsAreNamed) {
  const std::string merge = "; try merging them with PEFT's merge_and_unload";
  EXPECT_EQ(error_with("peft_type", "IA3"), "[C peft_type] expected LORA, got 'IA3'" + merge);
  EXPECT_EQ(error_with("lora_bias", true), "[C lora_bias] expected none, got true" + merge);
  EXPECT_EQ(error_with("bias", "all"), "[C bias] expected none, got 'all'" + merge);
  EXPECT_EQ(error_with("init_lora_weights", "pissa"),
            "[C init_lora_weights] expected a kind that leaves the model's own weights, got \"pissa\"" + merge);
  EXPECT_EQ(error_with("init_lora_weights", "gaussian"), "loaded");
  EXPECT_EQ(error_with("r", 0), "[C r] expected a whole number from 1 to 1048576, got 0");
  EXPECT_EQ(error_with("rank_pattern", {{"q_(proj", 2}}).substr(0, 47),
            "[C rank_pattern] expected a regular expression ");
  EXPECT_EQ(error_with("alpha_pattern", {{"q_proj", -2}}),
            "[C alpha_pattern.q_proj] expected a positive number, got -2");
  EXPECT_EQ(error_with("modules_to_save", 3), "[C modules_to_save] expected names of modules, got 3");
}

TEST_F(PeftAdaptersTest, LengthsOfDoraAreThoseOfTheConfig) {
  const std::string first = "model.layers.0.mlp.down_proj.lora_magnitude_vector";
  EXPECT_EQ(error_with("use_dora", true), "[A " + first + "] expected [24], as use_dora is true, got none");
  save(tiny_shape("llama"), {.rank = 4, .targets = {"q_proj", "down_proj"}, .dora = true});
  EXPECT_EQ(config_.at("use_dora"), true);
  EXPECT_EQ(error_of(), "loaded");
  EXPECT_EQ(error_with("use_dora", false),
            "[A base_model.model." + first +
                "] expected lora_A or lora_B of a layer, or a module of modules_to_save, got neither; try merging them "
                "with PEFT's merge_and_unload");
  tensors_["base_model.model." + first].sizes = {12};
  tensors_["base_model.model." + first].bytes.resize(12 * sizeof(float));
  EXPECT_EQ(error_of(), "[A " + first + "] expected [24], as use_dora is true, got [12]");
}

// The numbers of fused experts are in tests/golden/peft_test.cpp.
TEST_F(PeftAdaptersTest, FusedExpertsOfOtherSizesAreNamed) {
  const shape::ModelShape shape = tiny_shape("qwen3_moe");
  const shape::Experts& experts = shape.blocks.front().mlp.experts;
  const int64_t all = 4 * experts.count, gates = 2 * experts.intermediate;
  const auto with = [&](std::vector<int64_t> a, std::vector<int64_t> b) {
    save(shape, {.rank = 4, .alpha = 6, .targets = {"q_proj"}});
    for (const auto& [end, sizes] : {std::pair(".lora_A.weight", a), {".lora_B.weight", b}}) {
      const std::string name = std::string("base_model.model.model.layers.0.mlp.experts") + end;
      tensors_[name] = {name, "F32", sizes, std::string(static_cast<size_t>(sizes[0] * sizes[1]) * sizeof(float), 0)};
    }
    return error_of();
  };
  EXPECT_EQ(with({all, shape.hidden}, {gates, all}), "loaded");
  EXPECT_EQ(with({all, gates}, {shape.hidden, all}), "loaded");
  EXPECT_EQ(with({all, shape.hidden + 1}, {gates, all}),
            fmt::format("[A model.layers.0.mlp.experts] expected lora_A and lora_B of gate_up_proj or down_proj, whose "
                        "sizes tell rows from columns, got [{0}, {1}] and [{2}, {0}]; try merging them with PEFT's "
                        "merge_and_unload",
                        all, shape.hidden + 1, gates));
  EXPECT_EQ(
      with({all / 2, shape.hidden}, {gates, all / 2}),
      fmt::format("[A model.layers.0.mlp.experts.lora_A.weight] expected 4 rows for each of {} experts, got {} rows",
                  experts.count, all / 2));
}

// Earlier versions of transformers had a module for each of Granite's stacks.
TEST_F(PeftAdaptersTest, StacksOfModulesOfTheirOwn) {
  const shape::ModelShape shape = tiny_shape("granitemoe");
  const shape::Experts& experts = shape.blocks.front().mlp.experts;
  const int64_t all = 4 * experts.count;
  const auto add = [&](const std::string& module, int64_t in, int64_t out) {
    for (const auto& [end, sizes] :
         {std::pair(".lora_A.weight", std::vector{all, in}), {".lora_B.weight", {out, all}}}) {
      const std::string name = "base_model.model.model.layers.0.block_sparse_moe." + module + end;
      std::vector<float> values(static_cast<size_t>(sizes[0] * sizes[1]));
      for (size_t i = 0; i < values.size(); ++i) values[i] = 0.01F * static_cast<float>(i % 13);
      tensors_[name] = {name, "F32", sizes, testing::bytes_of(values)};
    }
  };
  const auto merged = [&](const std::string& up, const std::string& down) {
    save(shape, {.rank = 4, .alpha = 6, .targets = {"q_proj"}});
    add(up, shape.hidden, 2 * experts.intermediate);
    add(down, experts.intermediate, shape.hidden);
    EXPECT_EQ(error_of(), "loaded");
    return load_huggingface(adapter(), "", {}, {})->checksum();
  };
  const auto apart = merged("input_linear", "output_linear");
  EXPECT_EQ(apart, merged("experts.base_layer", "experts"));
  save(shape, {.rank = 4, .alpha = 6, .targets = {"q_proj"}});
  EXPECT_NE(apart, load_huggingface(adapter(), "", {}, {})->checksum());
}

TEST_F(PeftAdaptersTest, AdaptersOfParametersAreNotTrainedOn) {
  config_["target_parameters"] = {"mlp.experts.gate_up_proj"};
  EXPECT_EQ(error_of(), "loaded");
  EXPECT_EQ(error_in([&] { PeftAdapters(adapter()).options(); }),
            "[C target_parameters] expected none in adapters that are trained on, which are those of linear layers, "
            "got mlp.experts.gate_up_proj; try training all weights, which begins from the merged model");
}

// Adapters of a model that reads images too belong to layers of its language model; those of other parts are left out
// beside such a model, and are an error beside any other.
TEST_F(PeftAdaptersTest, LayersInALanguageModelHaveTheirNamesAlone) {
  const auto wanted = load_huggingface(adapter(), "", {}, {})->checksum();
  const std::map<std::string, RawTensor> plain = tensors_;
  for (const char* whole : {"model.language_model.", "language_model.model.", "model.text_model."}) {
    tensors_.clear();
    for (const auto& [name, alone] : plain) {
      RawTensor tensor = alone;
      tensor.name.replace(std::string("base_model.model.").size(), std::string("model.").size(), whole);
      tensors_[tensor.name] = tensor;
    }
    ASSERT_EQ(error_of(), "loaded") << whole;
    EXPECT_EQ(load_huggingface(adapter(), "", {}, {})->checksum(), wanted);
  }
  const std::string image = "base_model.model.model.visual.blocks.0.attn.qkv.lora_A.weight";
  tensors_[image] = {image, "F32", {4, 8}, std::string(4 * 8 * 4, 0)};
  EXPECT_EQ(error_of(),
            "[A base_model.model.model.visual.blocks.0.attn.qkv.lora_A.weight] expected a linear layer of "
            "the model, got one of a part that reads images; try the model that the adapters were trained "
            "on");
}

TEST_F(PeftAdaptersTest, TheBaseIsNamed) {
  EXPECT_EQ(error_with("base_model_name_or_path", "/nowhere/model"),
            "[C base_model_name_or_path] expected a model directory, got /nowhere/model, which is none; try naming the "
            "model's directory there");
  EXPECT_NE(error_with("base_model_name_or_path", "org/unknown").find("try --download"), std::string::npos);
  EXPECT_EQ(error_with("base_model_name_or_path", nullptr),
            "[C] expected base_model_name_or_path: the model that the adapters belong to, got none");
  std::ofstream(adapter() + "/model.safetensors") << "";
  EXPECT_EQ(error_of(),
            "[A] expected a model, or adapters of one, got model.safetensors beside adapter_config.json; "
            "try moving the adapters to a directory of their own");
}

TEST_F(PeftAdaptersTest, TensorsFitTheirLayers) {
  EXPECT_EQ(error_with("r", 3),
            "[A model.layers.0.mlp.down_proj.lora_A.weight] expected [3, 40] by its rank, got [4, 40]");
  EXPECT_EQ(error_with("rank_pattern", {{"layers.0.self_attn.q_proj", 5}}),
            "[A model.layers.0.self_attn.q_proj.lora_A.weight] expected [5, 24] by its rank, got [4, 24]");
  const RawTensor b = tensors_.extract(kQuery + std::string(".lora_B.weight")).mapped();
  EXPECT_EQ(error_of(), "[A model.layers.0.self_attn.q_proj.lora_B.weight] expected [32, 4] by its rank, got none");
  tensors_["q"] = {"base_model.model.model.layers.7.self_attn.q_proj.lora_B.weight", "F32", b.sizes, b.bytes};
  EXPECT_NE(error_of().find("lora_B.weight] expected [32, 4] by its rank, got none"), std::string::npos);
  tensors_["a"] = {
      "base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight", "F32", {4, 24}, std::string(4 * 24 * 4, '\0')};
  tensors_[b.name] = b;
  EXPECT_EQ(error_of(),
            "[A model.layers.7.self_attn.q_proj] expected a linear layer of the model, got none of that "
            "name; try the model that the adapters were trained on");
  tensors_.erase("a");
  tensors_["q"] = {"base_model.model.model.embed_tokens.lora_embedding_A", "F32", {1, 1}, std::string(4, '\0')};
  EXPECT_EQ(error_of(),
            "[A base_model.model.model.embed_tokens.lora_embedding_A] expected lora_A or lora_B of a layer, "
            "or a module of modules_to_save, got neither; try merging them with PEFT's merge_and_unload");
}

// Layers that PEFT saves beside their adapters have the values of the model that is there.
TEST_F(PeftAdaptersTest, FrozenLayersAreThoseOfTheModel) {
  const TensorDirectory files(base());
  const TensorEntry& own = *files.find("model.layers.0.self_attn.q_proj.weight");
  RawTensor& frozen = tensors_["frozen"] = {kQuery + std::string(".base_layer.weight"),
                                            "F32",
                                            own.sizes,
                                            {reinterpret_cast<const char*>(own.data.data()), own.data.size()}};
  EXPECT_EQ(error_of(), "loaded");
  const auto with_frozen = load_huggingface(adapter(), "", {}, {})->checksum();
  frozen.bytes[5] ^= 1;
  const std::string others = "expected the values of the model that the adapters belong to, got ";
  EXPECT_EQ(error_of(), "[A model.layers.0.self_attn.q_proj.weight] " + others +
                            "others; try merging them with PEFT's merge_and_unload");
  frozen.name = "base_model.model.model.layers.0.self_attn.nothing.base_layer.weight";
  EXPECT_NE(error_of().find(others + "a parameter that it lacks"), std::string::npos);
  tensors_.erase("frozen");
  EXPECT_EQ(error_of(), "loaded");
  EXPECT_EQ(load_huggingface(adapter(), "", {}, {})->checksum(), with_frozen);
}

// A tied head has no weights of its own, which would be left out.
TEST_F(PeftAdaptersTest, ASavedHeadNeedsAModelThatHasOne) {
  tensors_["head"] = {"base_model.model.lm_head.weight", "F32", {37, 24}, std::string(37 * 24 * 4, '\0')};
  config_["modules_to_save"] = {"lm_head"};
  EXPECT_EQ(error_of(),
            "[A lm_head.weight] expected a parameter of the model, untied if it is a head, got none of that "
            "name");
}

TEST_F(PeftAdaptersTest, TrainedOnAreAllOfTheLayersOrNone) {
  WeightsOptions on{.trained = true, .lora = PeftAdapters(adapter()).options()};
  EXPECT_EQ(on.lora.targets, (std::vector<std::string>{"q_proj", "down_proj"}));
  EXPECT_EQ(error_of(on), "loaded");
  on.lora.targets = {"q_proj"};
  EXPECT_EQ(error_of(on),
            "[A] expected adapters of the blocks' linear layers, 2, to train on, got 4; try training all "
            "weights of the merged model");
  on.lora.targets = {"q_proj", "down_proj", "k_proj"};
  EXPECT_EQ(
      error_of(on),
      "[A] expected base_model.model.model.layers.0.self_attn.k_proj.lora_B.weight, got no adapter of that layer");
  tensors_["norm"] = {"base_model.model.model.norm.weight", "F32", {24}, std::string(24 * 4, '\0')};
  config_["modules_to_save"] = {"norm", "score"};
  EXPECT_EQ(error_of(), "loaded");
  EXPECT_EQ(PeftAdapters(adapter()).options().modules_to_save, std::vector<std::string>{"norm"})
      << "a score head is trained in any case, and the file has none";
}

// As in PEFT a name of modules_to_save is the end of a name, not of parts of it: norms of the blocks were saved too.
TEST_F(PeftAdaptersTest, ASavedModuleIsNamedByHowItEnds) {
  const std::string norm = "model.layers.1.input_layernorm.weight";
  tensors_["norm"] = {"base_model.model." + norm, "F32", {24}, testing::bytes_of(std::vector<float>(24, 3))};
  config_["modules_to_save"] = {"norm"};
  EXPECT_EQ(error_of(), "loaded");
  const auto merged = load_huggingface(adapter(), "", {}, {});
  const auto values = merged->values(merged->index_of(norm));
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), std::vector<float>(24, 3));
  const WeightsOptions on{.trained = true, .lora = PeftAdapters(adapter()).options()};
  EXPECT_EQ(error_of(on).find("[lora.modules_to_save] expected one of embed_tokens, norm, got 'input_layernorm'"), 0U);
}

// Modules that were trained whole are read as the file has them, and trained on.
TEST_F(PeftAdaptersTest, SavedModulesAreTrainedOn) {
  for (const char* family : {"llama", "gpt2"}) {  // whose head is its embedding
    const std::vector<std::string> modules =
        family == std::string("gpt2") ? std::vector<std::string>{"wte", "ln_f"} : std::vector<std::string>{"lm_head"};
    shape::ModelShape shape = tiny_shape(family);
    shape.tied_embeddings = family == std::string("gpt2");
    save(shape, {.rank = 3, .modules_to_save = modules});
    EXPECT_EQ(config_.at("modules_to_save"), modules);
    EXPECT_EQ(config_.contains("ensure_weight_tying"), family == std::string("gpt2"));
    for (size_t i = 0; i < weights_->own_params(); ++i)
      if (weights_->trains(static_cast<int>(i)))
        testing::change_values(*weights_, i, [](size_t j) { return static_cast<float>(j % 7); });
    save_peft(*weights_, adapter(), base());
    const WeightsOptions on{.trained = true, .lora = PeftAdapters(adapter()).options()};
    EXPECT_EQ(load_huggingface(adapter(), "", on, {})->checksum(), weights_->checksum()) << family;
    save_huggingface(*weights_, directory_ + "/merged");
    EXPECT_EQ(load_huggingface(adapter(), "", {}, {})->checksum(),
              load_huggingface(directory_ + "/merged", "", {}, {})->checksum())
        << family;
  }
}

TEST_F(PeftAdaptersTest, LayersThatAPatternNamesAreThoseOfTheFile) {
  config_["target_modules"] = ".*_proj";
  EXPECT_EQ(error_of(), "loaded");
  EXPECT_EQ(PeftAdapters(adapter()).options().targets,
            (std::vector<std::string>{"model.layers.0.mlp.down_proj", "model.layers.0.self_attn.q_proj",
                                      "model.layers.1.mlp.down_proj", "model.layers.1.self_attn.q_proj"}));
}

TEST_F(PeftAdaptersTest, NoFileOfThem) {
  std::filesystem::remove(adapter() + "/adapter_model.safetensors");
  EXPECT_EQ(error_in([&] { PeftAdapters(adapter()).options(); }),
            "[A] expected adapter_model.safetensors beside adapter_config.json, got none");
}

}  // namespace
}  // namespace collimate::model
