// Tokenizers whose directory has no tokenizer.json: SentencePiece's tokenizer.model and tiktoken files. Ids of texts
// are compared with those libraries' own in tokenizer_kinds_test.cpp.
#include <gmock/gmock.h>

#include <filesystem>

#include "collimate/host/atomic_file.h"
#include "collimate/host/file_io.h"
#include "collimate/text/chat_template.h"
#include "collimate/text/files.h"
#include "collimate/text/tokenizer.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;

class ModelFile : public testing::Test {
 protected:
  std::unique_ptr<Tokenizer> load(const std::string& kind, const std::string& config = "{}") {
    write("tokenizer.model", host::read_file(testdata("kinds/" + kind + "/tokenizer.model")));
    write("tokenizer_config.json", config);
    return load_tokenizer(directory_.path());
  }
  void write(const std::string& name, const std::string& content) {
    host::write_file_atomically(directory_.path(name), content);
  }
  std::string error() {
    return message_of<base::InputError>([&] { load_tokenizer(directory_.path()); });
  }
  TemporaryDirectory directory_;
};

TEST_F(ModelFile, SentencePieceNamesItsSpecialTokens) {
  const auto tokenizer = load("sp_llama");
  EXPECT_EQ(tokenizer->info().kind, "SentencePiece BPE with byte fallback");
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(tokenizer->info().unk, 0);
  EXPECT_EQ(tokenizer->encode("<s></s>"), (Ids{1, 2}));
  const Ids spelled = tokenizer->encode("</s>", {.parse_special = false});
  EXPECT_EQ(tokenizer->decode(spelled), "</s>");
  EXPECT_FALSE(tokenizer->is_special(*tokenizer->id_of("<tool>")));
}

TEST_F(ModelFile, TheDummyPrefixStandsWhereTheConfigSays) {
  const auto text = [&](const std::string& config) {
    const auto tokenizer = load("sp_llama", config);
    const Ids ids = tokenizer->encode("the</s>the", {.parse_special = true});
    const auto end = std::find(ids.begin(), ids.end(), tokenizer->eos_id());
    return tokenizer->token_bytes(ids.front()).substr(0, 1) + tokenizer->token_bytes(*(end + 1)).substr(0, 1);
  };
  EXPECT_EQ(text("{}"), " t");
  EXPECT_EQ(text(R"({"legacy": true})"), "  ");
  EXPECT_EQ(text(R"({"add_prefix_space": false})"), "tt");
  EXPECT_EQ(text(R"({"add_prefix_space": null, "legacy": null})"), " t");
}

TEST_F(ModelFile, AddedTokensOfTheOlderForm) {
  load("sp_llama");
  write("added_tokens.json", R"({"<pad>": 5000, "<word>": 5001})");
  write("tokenizer_config.json", R"({"pad_token": "<pad>"})");
  const auto tokenizer = load_tokenizer(directory_.path());
  EXPECT_EQ(tokenizer->pad_id(), 5000);
  EXPECT_TRUE(tokenizer->is_special(5000));
  EXPECT_FALSE(tokenizer->is_special(5001));
  EXPECT_EQ(tokenizer->encode("<word><pad>"), (Ids{5001, 5000}));
}

TEST_F(ModelFile, AnyBytesSurviveByteFallback) {
  const auto tokenizer = load("sp_llama");
  for (const std::string text : {"a\xFF\xFEz", "\xE4\xBD", " x \xF0\x9F\xA6  ", "   "})
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST_F(ModelFile, SavedFilesReadTheSame) {
  const TemporaryDirectory to;
  const auto tokenizer = load("llama3");
  tokenizer->save(to.path());
  EXPECT_EQ(load_tokenizer(to.path())->encode("the model<|eot_id|>"), tokenizer->encode("the model<|eot_id|>"));
}

// A tokenizer.json's model as vocab.json + merges.txt.
class OlderForm : public ModelFile {
 protected:
  nlohmann::json write_model(const std::string& name) {
    nlohmann::json file = read_json_file(testdata(name + "/tokenizer.json"));
    write("vocab.json", file["model"]["vocab"].dump());
    std::string merges = "#version: 0.2\n";
    for (const auto& merge : file["model"]["merges"])
      merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
    write("merges.txt", merges);
    return file;
  }
};

TEST_F(OlderForm, GivesTheSameIds) {
  nlohmann::json added = nlohmann::json::object();
  const nlohmann::json file = write_model("byte_level");
  for (const auto& token : file.at("added_tokens")) added[std::to_string(token["id"].get<int>())] = token;
  write("tokenizer_config.json",
        nlohmann::json{{"tokenizer_class", "Qwen2Tokenizer"}, {"added_tokens_decoder", added}}.dump());
  const auto older = load_tokenizer(directory_.path());
  const auto newer = load_tokenizer(testdata("byte_level"));
  for (const std::string text : {"", " ", "the  the\n\n x", "größe \xFF日本 it's 1234", "cafe\u0301<|im_end|>"})
    EXPECT_EQ(older->encode(text), newer->encode(text)) << text;
}

TEST_F(OlderForm, NoPrefixSpaceIsTheDefault) {
  write_model("byte_level");
  const auto ids = [&](const char* config) {
    write("tokenizer_config.json", config);
    return load_tokenizer(directory_.path())->encode("the");
  };
  EXPECT_EQ(ids(R"({"add_prefix_space": null})"), ids("{}"));
  EXPECT_EQ(ids(R"({"add_prefix_space": false})"), ids("{}"));
  EXPECT_NE(ids(R"({"add_prefix_space": true})"), ids("{}"));
}

// Ids of transformers 5.23 (GPT2Tokenizer of these files). OPT is published so, each token with its flags.
TEST_F(OlderForm, NamedTokensAreSpecial) {
  write_model("kinds/bloom");
  const auto with = [&](const nlohmann::json& pad, const char* further) {
    const nlohmann::json named = {{"unk_token", "</s>"},
                                  {"bos_token", {{"content", "</s>"}, {"normalized", true}}},
                                  {"eos_token", "</s>"},
                                  {"pad_token", pad},
                                  {"additional_special_tokens", {further}}};
    write("tokenizer_config.json", named.dump());
    return load_tokenizer(directory_.path());
  };
  const std::string text = "a</s>b  <pad> the<s><unk>";
  const auto tokenizer = with("<pad>", "<none>");
  EXPECT_EQ(tokenizer->encode(text), (Ids{68, 2, 69, 266, 3, 269, 31, 86, 33, 31, 331, 78, 33}));
  EXPECT_TRUE(tokenizer->is_special(2));
  EXPECT_EQ(tokenizer->decode(Ids{68, 2, 69, 3}), "ab");
  EXPECT_EQ(with({{"content", "<pad>"}, {"lstrip", true}}, "<s>")->encode(text),
            (Ids{68, 2, 69, 3, 269, 1, 31, 331, 78, 33}));
}

// transformers loads what auto_map names, and what that imports, from the tokenizer's directory.
TEST_F(ModelFile, SavingKeepsThePythonOfAutoMap) {
  write("tiktoken.model", host::read_file(testdata("kinds/moonshot/tiktoken.model")));
  write("tokenizer_config.json", host::read_file(testdata("kinds/moonshot/tokenizer_config.json")));
  write("tokenization_moonshot.py", "import json\nfrom .names import NAMES\nfrom . import nothing\n");
  write("names.py", "from .tokenization_moonshot import X\nfrom .absent import Y\n");
  write("modeling_moonshot.py", "");
  const TemporaryDirectory to;
  load_tokenizer(directory_.path())->save(to.path());
  EXPECT_EQ(host::read_file(to.path("tokenization_moonshot.py")),
            host::read_file(directory_.path("tokenization_moonshot.py")));
  EXPECT_TRUE(file_exists(to.path("names.py")));
  EXPECT_FALSE(file_exists(to.path("modeling_moonshot.py")));
  EXPECT_EQ(read_json_file(to.path("tokenizer_config.json")).at("auto_map"),
            read_json_file(directory_.path("tokenizer_config.json")).at("auto_map"));
}

// transformers has no class for Qwen 1, so that its exports need their Python; those of other families are written for
// transformers' own class and do without.
TEST_F(ModelFile, SavingKeepsThePythonOfAModelWithoutAClass) {
  for (const bool unknown : {true, false}) {
    write("tokenizer.model", host::read_file(testdata("kinds/sp_llama/tokenizer.model")));
    write("config.json", nlohmann::json{{"model_type", unknown ? "qwen" : "deepseek_v3"},
                                        {"auto_map", {{"AutoModelForCausalLM", "modeling_own.Model"}}}}
                             .dump());
    write("modeling_own.py", "from .configuration_own import Config\n");
    write("configuration_own.py", "");
    const TemporaryDirectory to;
    load_tokenizer(directory_.path())->save(to.path());
    for (const char* name : {"modeling_own.py", "configuration_own.py"})
      EXPECT_EQ(file_exists(to.path(name)), unknown) << name;
  }
}

// As transformers chooses: "tool_use" where a conversation has tools; files of their own go before the config's list.
TEST_F(ModelFile, AListOfTemplatesHasOneForTools) {
  const auto named = [](const char* name, const std::string& text) {
    return nlohmann::json{{"name", name}, {"template", "{{ messages[0]['content'] }}" + text}};
  };
  const auto list = [](const nlohmann::json& entries) { return nlohmann::json{{"chat_template", entries}}.dump(); };
  const auto rendered = [](const Tokenizer& tokenizer) {
    const auto chat = make_chat_template(tokenizer);
    const TemplateInputs tools{.tools = {{{"type", "function"}}}};
    return chat->render(Messages{{"user", "a"}}, false) + chat->render({Messages{{"user", "a"}}, tools}, false);
  };
  const nlohmann::json tool_use = named("tool_use", "{{ tools[0].type }}");
  EXPECT_EQ(rendered(*load("sp_llama", list({named("default", "."), tool_use, named("rag", "?")}))), "a.afunction");
  EXPECT_THAT(message_of<base::InputError>([&] {
                load("sp_llama", list({tool_use, named("rag", "")}));
              }),
              HasSubstr("tokenizer_config.json] expected a chat template named default, got rag, tool_use"));

  write("chat_template.jinja", "{{ messages[0]['content'] }}!");
  std::filesystem::create_directory(directory_.path("additional_chat_templates"));
  write("additional_chat_templates/tool_use.jinja", "{{ messages[0]['content'] }}{{ tools[0].type }}!");
  write("additional_chat_templates/rag.jinja", "of documents");
  const auto tokenizer = load_tokenizer(directory_.path());
  EXPECT_EQ(rendered(*tokenizer), "a!afunction!");
  const TemporaryDirectory to;
  tokenizer->save(to.path());
  EXPECT_EQ(rendered(*load_tokenizer(to.path())), "a!afunction!");
  EXPECT_EQ(host::read_file(to.path("additional_chat_templates/rag.jinja")), "of documents");
  save_chat_template("chatml", to.path());
  EXPECT_EQ(load_tokenizer(to.path())->info().tool_template, "") << "a chosen template is for all conversations";
}

// PEFT's directories may have a tokenizer, but no configs of the model: those name further stop ids.
TEST_F(ModelFile, AdaptersHaveTheirOwnTokenizerOrTheirModels) {
  write("generation_config.json", R"({"eos_token_id": [2, 5]})");
  EXPECT_EQ(load("sp_llama", R"({"chat_template": "of the model"})")->info().stop_ids, (Ids{2, 5}));
  TemporaryDirectory adapters, saved;
  host::write_file_atomically(adapters.path("adapter_config.json"),
                              R"({"base_model_name_or_path": ")" + directory_.path() + "\"}");
  EXPECT_EQ(load_tokenizer(adapters.path())->info().chat_template, "of the model");
  EXPECT_FALSE(has_tokenizer(adapters.path()));
  host::write_file_atomically(adapters.path("tokenizer.model"), host::read_file(directory_.path("tokenizer.model")));
  host::write_file_atomically(adapters.path("tokenizer_config.json"), R"({"chat_template": "of the adapters"})");
  const auto own = load_tokenizer(adapters.path());
  EXPECT_EQ(own->info().chat_template, "of the adapters");
  EXPECT_EQ(own->info().stop_ids, (Ids{2, 5}));
  own->save(saved.path());
  EXPECT_EQ(load_tokenizer(saved.path())->info().stop_ids, (Ids{2, 5}));
}

TEST_F(ModelFile, Llama3KnowsItsSpecialTokens) {
  const auto tokenizer = load("llama3");
  const int32_t first = *tokenizer->bos_id();
  EXPECT_EQ(tokenizer->encode("<|begin_of_text|><|eot_id|><|reserved_special_token_250|>"),
            (Ids{first, first + 9, first + 255}));
  EXPECT_EQ(tokenizer->eos_id(), first + 1);
  EXPECT_EQ(tokenizer->vocab_size(), first + 256);
}

TEST_F(ModelFile, MalformedFilesAreNamed) {
  const std::string model = host::read_file(testdata("kinds/sp_llama/tokenizer.model"));
  write("tokenizer.model", model.substr(0, model.size() / 2));
  EXPECT_THAT(error(), HasSubstr("tokenizer.model] expected a SentencePiece model, got a broken field"));
  write("tokenizer.model", "");
  EXPECT_THAT(error(), HasSubstr("expected pieces, got none"));
  write("tokenizer.model", "AAAA 0\n!!!! 1\n");
  EXPECT_THAT(error(), HasSubstr("tokenizer.model:2] expected base64, got the byte 0x21"));
  write("tokenizer.model", "AAAA 0\nAAAB x\n");
  EXPECT_THAT(error(), HasSubstr("expected a token in base64, a space and its rank, got 'AAAB x'"));
  write("tokenizer.model", "AAAA 0\n");
  write("tokenizer_config.json", R"({"tokenizer_class": "OtherTokenizer"})");
  EXPECT_THAT(error(),
              AllOf(HasSubstr("expected qwen.tiktoken, tokenizer.model of Llama 3, or tiktoken.model of Moonlight"),
                    HasSubstr("got tokenizer.model of 'OtherTokenizer' ()")));
}

// tiktoken.model of Moonlight and Kimi: the config names the program that splits texts, and some of the special tokens.
TEST_F(ModelFile, MoonshotHasTheSpecialTokensOfItsConfig) {
  write("tiktoken.model", host::read_file(testdata("kinds/moonshot/tiktoken.model")));
  const auto with = [&](const std::string& module, const std::string& added) {
    write("tokenizer_config.json", R"({"auto_map": {"AutoTokenizer": [")" + module + R"(", null]}, "bos_token": "[BOS]",
        "eos_token": "<|im_end|>", "added_tokens_decoder": {)" +
                                       added + "}}");
  };
  const std::string added = R"("420": {"content": "[BOS]", "special": true}, "429": {"content": "<think>"},
      "422": {"content": "<|im_end|>", "special": true})";
  with("moonshotai/Kimi-K2-Instruct--tokenization_kimi.TikTokenTokenizer", added);
  const auto tokenizer = load_tokenizer(directory_.path());
  EXPECT_EQ(tokenizer->encode("[BOS]<|im_end|><think><|reserved_token_675|>"), (Ids{420, 422, 429, 675}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("<think><|reserved_token_675|><|reserved_token_676|>")),
            "<think><|reserved_token_676|>");
  EXPECT_EQ(tokenizer->bos_id(), 420);
  EXPECT_EQ(tokenizer->eos_id(), 422);
  EXPECT_EQ(tokenizer->vocab_size(), 676);
  with("tokenization_moonshot.TikTokenTokenizer", "");
  EXPECT_THAT(error(), HasSubstr("expected special tokens in tokenizer_config.json (added_tokens_decoder), got none"));
  with("tokenization_kimia.TikTokenTokenizer", added);
  EXPECT_THAT(error(), HasSubstr("got tiktoken.model of '' (tokenization_kimia)"));
}

// A field of the file's form: number, four bytes or a varint or bytes.
std::string field(int number, int64_t value) {
  std::string out;
  for (uint64_t rest = static_cast<uint64_t>(number) << 3; true; rest >>= 7) {
    out += static_cast<char>((rest & 0x7F) | (rest > 0x7F ? 0x80 : 0));
    if (rest <= 0x7F) break;
  }
  return out + static_cast<char>(value);
}

std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

TEST_F(ModelFile, AControlPieceIsMadeByNoMerge) {
  const auto piece = [](const char* text, int64_t type) {
    return field(1, field(1, std::string(text)) + field(3, type));
  };
  const std::string pieces =
      piece("<unk>", 2) + piece("<s>", 3) + piece("<", 1) + piece("s", 1) + piece(">", 1) + piece("s>", 1);
  write("tokenizer.model", pieces + field(2, field(3, 2)) + field(3, field(3, 0) + field(4, 0)));
  const auto tokenizer = load_tokenizer(directory_.path());
  EXPECT_EQ(tokenizer->encode("<s>"), (Ids{1}));
  EXPECT_EQ(tokenizer->encode("<s>", {.parse_special = false}), (Ids{2, 5}));
}

TEST_F(ModelFile, WhatIsNotSupportedIsNamed) {
  const auto with = [&](int64_t type, const std::string& trainer, const std::string& normalizer) {
    const std::string piece = field(1, std::string("a")) + field(3, type);
    write("tokenizer.model", field(1, piece) + field(2, trainer) + field(3, normalizer));
    return error();
  };
  EXPECT_THAT(with(1, field(3, 3), ""), HasSubstr("a model of type Unigram (1) or BPE (2), got 3"));
  EXPECT_THAT(with(1, field(24, 1), ""), HasSubstr("treat_whitespace_as_suffix"));
  EXPECT_THAT(with(1, "", field(5, 0)), HasSubstr("escape_whitespaces: false"));
  EXPECT_THAT(with(5, "", ""), HasSubstr("no piece of type UNUSED, got 'a'"));
  EXPECT_EQ(with(1, "", ""), "");
}

}  // namespace
}  // namespace collimate::text
