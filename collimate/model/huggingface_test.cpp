#include <cstring>
#include <fstream>

#include "collimate/base/error.h"
#include "collimate/base/memory_state.h"
#include "collimate/host/atomic_file.h"
#include "collimate/model/file_order.h"
#include "collimate/model/huggingface_check.h"
#include "collimate/model/rounding.h"
#include "collimate/model/safetensors.h"
#include "tests/support/base/error_of.h"
#include "tests/support/model/edit_weights.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

namespace fs = std::filesystem;
using testing::pack;
using testing::tiny_shape;
using testing::tiny_weights;
using testing::to_vector;

class HuggingFace : public testing::InDirectory {
 protected:
  // Gives what loading says; checking must say the same.
  std::string error_of(const std::string& head = "") {
    const std::string loading = error_in([&] { load_huggingface(directory_, head, {}, {}); });
    EXPECT_EQ(error_in([&] { check_huggingface(directory_, head, {}); }), loading);
    return loading;
  }
  template <class Step>
  std::string error_in(const Step& step) {
    try {
      step();
    } catch (const base::Error& error) {
      std::string text = error.what();
      for (size_t at = text.find(directory_); at != std::string::npos; at = text.find(directory_))
        text.replace(at, directory_.size(), "D");
      return text;
    }
    return "loaded";
  }
};

TEST_F(HuggingFace, RoundTripOfEveryFamily) {
  for (const std::string& family : testing::tiny_models()) {
    auto weights = tiny_weights(tiny_shape(family));
    for (const int64_t shard_bytes : {int64_t{1} << 30, int64_t{6000}}) {
      save_huggingface(*weights, directory_, {.shard_bytes = shard_bytes});
      EXPECT_EQ(load_huggingface(directory_, "", {}, {})->checksum(), weights->checksum()) << family;
    }
    EXPECT_TRUE(fs::exists(directory_ + "/model.safetensors.index.json"));
    EXPECT_FALSE(fs::exists(directory_ + "/model.safetensors"));
    save_huggingface(*weights, directory_);
    EXPECT_FALSE(fs::exists(directory_ + "/model.safetensors.index.json"));
  }
}

nlohmann::json json_in(const std::string& path) { return nlohmann::json::parse(std::ifstream(path)); }

// A model in files of bf16 is written in as many again, in either type, and its values stay.
TEST_F(HuggingFace, FormOfFilesIsKept) {
  for (const std::string& family : testing::tiny_models()) {
    save_huggingface(*tiny_weights(tiny_shape(family)), directory_, {.dtype = "BF16", .shard_bytes = 6000});
    EXPECT_EQ(json_in(directory_ + "/config.json").at("torch_dtype"), "bfloat16");
    const auto loaded = load_huggingface(directory_, "", {}, {});
    const std::string again = directory_ + "/again", index = "/model.safetensors.index.json";
    for (const std::string dtype : {"", "BF16", "F32"}) {
      const FileForm form = form_of_files(directory_, *loaded, dtype);
      EXPECT_EQ(form.dtype, dtype.empty() ? "BF16" : dtype) << family;
      save_huggingface(*loaded, again, form);
      const nlohmann::json was = json_in(directory_ + index), is = json_in(again + index);
      EXPECT_EQ(is.at("weight_map"), was.at("weight_map")) << family;
      EXPECT_EQ(is.at("metadata").at("total_size").get<int64_t>(),
                was.at("metadata").at("total_size").get<int64_t>() * (form.dtype == "F32" ? 2 : 1));
      EXPECT_EQ(load_huggingface(again, "", {}, {})->checksum(), loaded->checksum()) << family;
    }
    fs::remove_all(again);
  }
}

TEST_F(HuggingFace, FormOfOneFileOrNoneIsOneFile) {
  const auto weights = tiny_weights(tiny_shape("llama"));
  EXPECT_EQ(form_of_files(directory_, *weights).dtype, "F32");
  EXPECT_EQ(form_of_files(directory_, *weights, "BF16").dtype, "BF16");
  save_huggingface(*weights, directory_, {.dtype = "BF16"});
  EXPECT_EQ(form_of_files(directory_, *weights).dtype, "BF16");
  EXPECT_EQ(form_of_files(directory_, *weights).shard_bytes, INT64_MAX);
  save_huggingface(*weights, directory_);
  EXPECT_EQ(form_of_files(directory_, *weights).dtype, "F32");
}

// One norm in fp32 among weights in bf16.
TEST_F(HuggingFace, MixedFilesAreInFloat32) {
  const auto weights = tiny_weights(tiny_shape("llama"));
  save_huggingface(*weights, directory_);
  const SafetensorsFile file(directory_ + "/model.safetensors");
  std::vector<TensorToWrite> tensors;
  for (const TensorEntry& entry : file.entries())
    tensors.push_back({entry.name, entry.sizes, [&entry](std::span<float> out) { read_floats(entry, "test", out); },
                       entry.name == "model.norm.weight" ? "F32" : "BF16"});
  fs::create_directories(directory_ + "/mixed");
  fs::copy_file(directory_ + "/config.json", directory_ + "/mixed/config.json");
  write_safetensors(directory_ + "/mixed/model.safetensors", tensors);
  EXPECT_EQ(form_of_files(directory_ + "/mixed", *weights).dtype, "F32");
  for (TensorToWrite& tensor : tensors) tensor.dtype = "BF16";
  write_safetensors(directory_ + "/mixed/model.safetensors", tensors);
  EXPECT_EQ(form_of_files(directory_ + "/mixed", *weights).dtype, "BF16");
}

// A model's tensors with those of a block's experts one behind the other.
std::vector<TensorToWrite> fused_tensors(const Weights& weights) {
  std::map<std::string, std::pair<std::vector<int64_t>, std::vector<float>>> tensors;
  for (size_t i = 0; i < weights.params().size(); ++i) {
    const shape::ParamSpec& spec = weights.params()[i];
    const bool up = spec.part == shape::Part::kExpertUp, routed = up || spec.part == shape::Part::kExpertDown;
    const std::string block = spec.name.substr(0, spec.name.find('.', sizeof("model.layers.")) + 1);
    std::string name = routed ? block + (up ? "mlp.experts.gate_up_proj" : "mlp.experts.down_proj") : spec.name;
    if (spec.part == shape::Part::kRouter && spec.kind == shape::ParamKind::kLinear) name = block + "mlp.gate.weight";
    auto& [sizes, values] = tensors[name];
    const tensor::HostRead own = weights.values(static_cast<int>(i));
    const size_t before = values.size();
    values.resize(before + own.size());
    to_file_order(spec, {own.begin(), own.end()}, std::span(values).subspan(before));
    sizes = file_sizes(spec);
    if (!routed) continue;
    const int64_t rows = spec.sizes[0] * (up ? 2 : 1);
    sizes = {static_cast<int64_t>(values.size()) / (rows * spec.sizes[1]), rows, spec.sizes[1]};
  }
  std::vector<TensorToWrite> all;
  for (const auto& [name, tensor] : tensors)
    all.push_back({name, tensor.first, [values = tensor.second](std::span<float> out) {
                     std::copy(values.begin(), values.end(), out.begin());
                   }});
  return all;
}

// As transformers 5 writes it where it is not asked for the published form: a block's experts are two tensors.
TEST_F(HuggingFace, FusedExpertsAreRead) {
  for (const char* family : {"mixtral", "qwen2_moe", "dots1", "deepseek_v2", "deepseek_v3"}) {
    auto weights = tiny_weights(tiny_shape(family));
    save_huggingface(*weights, directory_);
    write_safetensors(directory_ + "/model.safetensors", fused_tensors(*weights));
    EXPECT_EQ(load_huggingface(directory_, "", {}, {})->checksum(), weights->checksum()) << family;
    EXPECT_EQ(load_huggingface(directory_, "", {.mapped = true}, {})->checksum(), weights->checksum()) << family;
  }
  save_huggingface(*tiny_weights(tiny_shape("qwen3_moe")), directory_);
  write_safetensors(directory_ + "/model.safetensors", fused_tensors(*tiny_weights(tiny_shape("mixtral"))));
  EXPECT_EQ(error_of(), "[D model.layers.0.mlp.experts.gate_up_proj] expected [5, 48, 24], got [4, 80, 24]");
}

// The files' own bits, from one file and from shards, transposed or not.
TEST_F(HuggingFace, AMappedModelIsTheSameWithoutItsValuesInMemory) {
  for (const std::string& family : testing::tiny_models())
    for (const int64_t shard_bytes : {int64_t{1} << 30, int64_t{6000}}) {
      save_huggingface(*tiny_weights(tiny_shape(family)), directory_, {.shard_bytes = shard_bytes});
      for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kBFloat16Dot, ComputeType::kInt8}) {
        auto mapped = load_huggingface(directory_, "", {.compute = compute, .mapped = true}, {});
        auto whole = load_huggingface(directory_, "", {.compute = compute}, {});
        const auto logits = [](const std::shared_ptr<Weights>& weights) {
          Model model(weights, {});
          return to_vector(model.logits(model.forward(pack({{1, 2, 3}, {36, 0, 36, 5}}))));
        };
        EXPECT_EQ(logits(mapped), logits(whole)) << family;
        EXPECT_EQ(mapped->checksum(), whole->checksum()) << family;
        EXPECT_EQ(mapped->version(), whole->version()) << family;
        const RoundingReport of_mapped = int8_rounding({}, *mapped), of_whole = int8_rounding({}, *whole);
        EXPECT_EQ(of_mapped.relative, of_whole.relative) << family;
        EXPECT_EQ(of_whole.relative > 0, compute == ComputeType::kInt8) << family;
        const auto bytes = [](const Weights& weights, const std::string& purpose) {
          for (const MemoryItem& item : weights.memory())
            if (item.purpose == purpose) return item.bytes;
          return int64_t{0};
        };
        EXPECT_EQ(bytes(*mapped, "panels"), bytes(*whole, "panels")) << family;
        int64_t small = 0, padding = 0;  // norms and biases
        for (const shape::ParamSpec& spec : mapped->params())
          if (spec.sizes.size() == 1) small += spec.count() * static_cast<int64_t>(sizeof(float)), padding += 64;
        EXPECT_GE(bytes(*mapped, "values"), small) << family;
        EXPECT_LT(bytes(*mapped, "values"), small + padding) << family;
      }
    }
}

// transformers 5 would take the head of the files, earlier ones the embedding.
TEST_F(HuggingFace, AHeadBesideATiedEmbeddingHasItsValues) {
  shape::ModelShape shape = tiny_shape("llama");
  shape.tied_embeddings = false;
  save_huggingface(*tiny_weights(shape), directory_);
  const std::string file = directory_ + "/config.json";
  auto config = nlohmann::json::parse(host::read_file(file));
  config["tie_word_embeddings"] = true;
  host::write_file_atomically(file, config.dump());
  EXPECT_EQ(
      base::message_of([&] { load_huggingface(directory_, "", {}, {}); }),
      "[" + directory_ +
          " lm_head.weight] expected the values of model.embed_tokens.weight, as "
          "tie_word_embeddings is true, got others; try tie_word_embeddings: false in config.json to use them, or "
          "leaving them out");
  auto weights = tiny_weights(shape);
  EXPECT_EQ(form_of_files(directory_, *weights).dtype, "F32") << "only loading compares the two";
  const auto embedding = weights->values(0);
  const std::vector<float> values(embedding.begin(), embedding.end());
  std::ranges::copy(values, testing::edit_of(*weights, weights->index_of("lm_head.weight")).begin());
  weights->commit();
  save_huggingface(*weights, directory_);
  host::write_file_atomically(file, config.dump());
  EXPECT_EQ(load_huggingface(directory_, "", {}, {})->index_of("lm_head.weight"), -1);
}

// Panels that are shared by several parameters, and packed by several threads.
TEST_F(HuggingFace, AMappedModelIsPackedAlikeByAnyThreads) {
  shape::ModelShape shape = tiny_shape("llama");
  shape.vocabulary = 500;
  for (shape::Block& block : shape.blocks)  // q of 200 rows, k and v of 40: panels of 32 are shared
    block.attention.heads = 25, block.attention.kv_heads = 5;
  shape.tied_embeddings = false;
  save_huggingface(*tiny_weights(shape), directory_);
  host::CorePool pool(2);
  for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kBFloat16Amx, ComputeType::kInt8}) {
    auto mapped = load_huggingface(directory_, "", {.compute = compute, .mapped = true}, {&pool});
    auto whole = load_huggingface(directory_, "", {.compute = compute}, {});
    mapped->pack_all();
    whole->pack_all();
    for (const char* name : {"model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.down_proj.weight",
                             "model.layers.1.mlp.gate_proj.weight", "lm_head.weight"}) {
      const auto &a = mapped->panels(mapped->index_of(name)), &b = whole->panels(whole->index_of(name));
      const int64_t bytes = tensor::packed_bytes({}, a.n, a.k, compute, 1);
      ASSERT_EQ(bytes, tensor::packed_bytes({}, b.n, b.k, compute, 1));
      std::vector<std::byte> of_a(static_cast<size_t>(bytes)), of_b = of_a;
      tensor::copy_out({}, a.data, bytes, of_a.data());
      tensor::copy_out({}, b.data, bytes, of_b.data());
      EXPECT_EQ(of_a, of_b) << name;
    }
  }
}

TEST_F(HuggingFace, AMappedModelDoesNotMoveOrChange) {
  save_huggingface(*tiny_weights(tiny_shape("llama")), directory_);
  auto mapped = load_huggingface(directory_, "", {.mapped = true}, {});
  tensor::AwayFile away(directory_);
  const std::string what = "[weights of model] expected values in memory for ",
                    got = ", got a model mapped from its files";
  const std::string remedy = "; try loading it without `mapped`";
  EXPECT_EQ(error_in([&] { mapped->master(1); }), what + "segment 1" + got + remedy);
  EXPECT_EQ(error_in([&] { mapped->values(0); }), what + "model.embed_tokens.weight" + got + remedy);
  EXPECT_EQ(error_in([&] { mapped->param(0); }), what + "model.embed_tokens.weight" + got + remedy);
  EXPECT_EQ(error_in([&] { mapped->offload(away); }), what + "another place" + got + remedy);
  base::MemoryState state;
  EXPECT_EQ(error_in([&] { mapped->save(state); }), what + "a checkpoint" + got + remedy);
  Model model(mapped, {});
  EXPECT_EQ(error_in([&] {
              model.forward(pack({{1, 37}}));
            }),
            "[embedding] expected ids in [0, 37), got 37; try the tokenizer of this model");
}

TEST_F(HuggingFace, RoundTripOfEveryHead) {
  for (const char* family : {"llama", "gpt2"})
    for (const char* head : {"lm", "score", "value"}) {
      shape::ModelShape tiny = tiny_shape(family);
      tiny.head = shape::parse_head(head);
      auto weights = tiny_weights(tiny);
      const int score = weights->index_of("score.weight");
      EXPECT_EQ(score >= 0, head != std::string("lm"));
      if (score >= 0) {
        EXPECT_NE(weights->values(score)[1], 0.F);  // or a head of zeros would do
      }
      save_huggingface(*weights, directory_);
      for (const char* asked : {"", head}) {
        const auto back = load_huggingface(directory_, asked, {}, {});
        EXPECT_EQ(back->shape().head, tiny.head) << family << " " << head;
        EXPECT_EQ(back->checksum(), weights->checksum()) << family << " " << head;
      }
    }
}

TEST_F(HuggingFace, Gpt2FilesHoldTransposedMatrices) {
  auto weights = tiny_weights(tiny_shape("gpt2"));
  save_huggingface(*weights, directory_);
  const TensorDirectory files(directory_);
  const TensorEntry* entry = files.find("transformer.h.0.attn.c_attn.weight");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->sizes, (std::vector<int64_t>{16, 48}));
  float second = 0;  // row 0, column 1 of the file is row 1, column 0 here
  std::memcpy(&second, entry->data.data() + sizeof(float), sizeof(float));
  EXPECT_EQ(second, weights->values(weights->index_of("transformer.h.0.attn.c_attn.weight"))[16]);
}

// Files of the base model alone lack the first part of each name but the head's; the first ones of GPT-2 also have
// masks stored as if they were parameters.
TEST_F(HuggingFace, BaseModelNamesOfEveryFamilyAndOldBuffers) {
  for (const std::string& family : testing::tiny_models()) {
    auto weights = tiny_weights(tiny_shape(family));
    save_huggingface(*weights, directory_);
    std::vector<TensorToWrite> tensors = {{"h.0.attn.bias", {1, 1, 2, 2}, [](std::span<float> out) { out[0] = 1; }}};
    {
      const TensorDirectory files(directory_);
      for (const auto& [name, entry] : files.entries()) {
        std::vector<float> values(static_cast<size_t>(entry->count()));
        read_floats(*entry, "test", values);
        const bool of_head = std::ranges::count(name, '.') == 1;  // "lm_head.weight"
        tensors.push_back({of_head ? name : name.substr(name.find('.') + 1), entry->sizes,
                           [values](std::span<float> out) { std::copy(values.begin(), values.end(), out.begin()); }});
      }
    }
    write_safetensors(directory_ + "/model.safetensors", tensors);
    EXPECT_EQ(load_huggingface(directory_, "", {}, {})->checksum(), weights->checksum()) << family;
  }
}

// DeepSeek-V3's files hold blocks behind the last one, which predict further tokens.
TEST_F(HuggingFace, BlocksThatPredictFurtherTokensAreLeftOut) {
  auto weights = tiny_weights(tiny_shape("deepseek_v3"));
  save_huggingface(*weights, directory_);
  std::vector<TensorToWrite> tensors;
  for (const char* name : {"2.enorm.weight", "2.self_attn.o_proj.weight"})
    tensors.push_back({std::string("model.layers.") + name, {2}, [](std::span<float> out) { out[0] = 1; }});
  write_safetensors(directory_ + "/more.safetensors", tensors);
  nlohmann::json map;
  for (const shape::ParamSpec& spec : weights->params()) map[spec.name] = "model.safetensors";
  for (const TensorToWrite& tensor : tensors) map[tensor.name] = "more.safetensors";
  std::ofstream(directory_ + "/model.safetensors.index.json") << nlohmann::json{{"weight_map", map}}.dump();
  EXPECT_EQ(error_of(),
            "[D] expected the tensors of its config.json alone, got also model.layers.2.enorm.weight, "
            "model.layers.2.self_attn.o_proj.weight");
  nlohmann::json config = shape::to_config(weights->shape());
  config["num_nextn_predict_layers"] = 1;
  std::ofstream(directory_ + "/config.json") << config.dump();
  EXPECT_EQ(load_huggingface(directory_, "", {}, {})->checksum(), weights->checksum());
}

TEST_F(HuggingFace, AMissingScoreHeadIsZero) {
  auto weights = tiny_weights(tiny_shape("qwen2"));
  save_huggingface(*weights, directory_);
  auto scored = load_huggingface(directory_, "score", {true}, {});
  EXPECT_EQ(scored->index_of("lm_head.weight"), -1);
  Model model(scored, {});
  const at::Tensor hidden = model.forward(pack({{1, 2, 3}}));
  EXPECT_EQ(to_vector(model.scores(hidden)), (std::vector<float>{0, 0, 0}));
  // A frozen one would give 0 for ever.
  EXPECT_EQ(error_of("score"),
            "[D] expected score.weight, as a head that is not trained begins as its file, got none; try a model that "
            "recipe: reward has trained");
  EXPECT_THROW(check_huggingface(directory_, "value", {}), base::InputError);
  EXPECT_NO_THROW(check_huggingface(directory_, "value", {.trained = true}));
  EXPECT_THROW(model.logits(hidden), base::InputError);
  testing::edit_of(*scored, scored->index_of("score.weight"))[0] = 2;
  scored->commit();
  EXPECT_FLOAT_EQ(to_vector(model.scores(hidden))[1], 2 * to_vector(hidden)[24]);
  save_huggingface(*scored, directory_);
  EXPECT_EQ(load_huggingface(directory_, "", {}, {})->checksum(), scored->checksum());
}

TEST_F(HuggingFace, LatentsAreCachedWhereTheyAreAskedFor) {
  save_huggingface(*tiny_weights(tiny_shape("deepseek_v2")), directory_);
  for (const bool asked : {false, true}) {
    const auto weights = load_huggingface(directory_, "", {.latent_cache = asked}, {});
    for (const shape::Block& block : weights->shape().blocks) EXPECT_EQ(block.attention.latent.cached, asked);
  }
  save_huggingface(*tiny_weights(tiny_shape("llama")), directory_);
  EXPECT_EQ(error_in([&] { load_huggingface(directory_, "", {.latent_cache = true}, {}); }),
            "[model latent_cache] expected a model with latent attention, got llama; try latent_cache: false");
}

TEST_F(HuggingFace, WrongDirectoriesAreNamed) {
  EXPECT_EQ(error_of(), "[D/config.json] expected a model's config.json, got no such file");
  auto weights = tiny_weights(tiny_shape("llama"));
  save_huggingface(*weights, directory_ + "/hf");
  EXPECT_EQ(error_of(),
            "[D/config.json] expected a model's config.json, got no such file; try D/hf, which has config.json");
  save_huggingface(*weights, directory_);
  EXPECT_EQ(error_of("critic"), "[head] expected one of lm, score, value, got 'critic'");
  auto config = shape::to_config(weights->shape());
  config["num_hidden_layers"] = 3;
  host::write_file_atomically(directory_ + "/config.json", config.dump());
  EXPECT_EQ(error_of(),
            "[D] expected 29 tensors, got none named model.layers.2.input_layernorm.weight, "
            "model.layers.2.self_attn.q_proj.weight, model.layers.2.self_attn.k_proj.weight, "
            "model.layers.2.self_attn.v_proj.weight and 5 more");
  config["num_hidden_layers"] = 1;
  host::write_file_atomically(directory_ + "/config.json", config.dump());
  EXPECT_EQ(error_of().substr(0, 60), "[D] expected the tensors of its config.json alone, got also ");
  config["num_hidden_layers"] = 2;
  config["vocab_size"] = 36;
  host::write_file_atomically(directory_ + "/config.json", config.dump());
  EXPECT_EQ(error_of(), "[D model.embed_tokens.weight] expected [36, 24], got [37, 24]");
  config["vocab_size"] = 37;
  host::write_file_atomically(directory_ + "/config.json", config.dump());
  fs::resize_file(directory_ + "/model.safetensors", 5000);
  EXPECT_NE(error_of().find("it is truncated"), std::string::npos);
}

}  // namespace
}  // namespace collimate::model
