#include "collimate/text/tokenizer.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "collimate/host/atomic_file.h"
#include "collimate/host/file_io.h"
#include "collimate/text/files.h"
#include "collimate/text/utf8.h"
#include "tests/support/fault_control.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;

const std::vector<std::string> kAwkward = {
    "",
    "plain text, 12 34",
    "  two  spaces and a tab\t\n\r\n ",
    "emoji 🦙 👩‍👩‍👧‍👦 🇩🇪",
    "你好，世界。日本語テキスト 한국어",
    "zero\u200bwidth\u200djoin\ufeff",
    std::string("nul\0inside", 10),
    "broken \xFF\xFE\x80 bytes \xE4\xBD and \xF0\x9F\xA6",
    "\xC0\x80\xED\xA0\x80",
    "\x80",
};

// A kind that load_tokenizer makes and that is not among these has no vectors.
TEST(Tokenizer, IdsAndTextEqualTheReferenceVectors) {
  std::set<std::string> kinds;
  for (const auto& vector : read_json_file(testdata("vectors.json"))) {
    const auto tokenizer = load_tokenizer(testdata(vector.at("tokenizer")));
    kinds.insert(tokenizer->info().kind);
    const std::string text = vector.at("text");
    const Ids ids = tokenizer->encode(text, {.add_special = true});
    EXPECT_EQ(ids, vector.at("ids").get<Ids>()) << vector.at("tokenizer") << " '" << text << "'";
    EXPECT_EQ(tokenizer->decode(ids), vector.at("decoded").get<std::string>());
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"BPE", "SentencePiece BPE with byte fallback", "byte-level BPE", "characters",
                                          "one id per word"}));
}

TEST(Tokenizer, AnyBytesSurvive) {
  for (const char* name : {"byte_level", "sentencepiece"}) {
    const auto tokenizer = load_tokenizer(testdata(name));
    for (const std::string& text : kAwkward) {
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text) << name;
    }
  }
}

TEST(Tokenizer, StreamedPiecesAreWholeCharactersAndJoinToTheText) {
  for (const char* name : {"byte_level", "sentencepiece"}) {
    const auto tokenizer = load_tokenizer(testdata(name));
    for (const std::string& text : kAwkward) {
      StreamDecoder stream(*tokenizer);
      std::string joined;
      for (const int32_t id : tokenizer->encode(text)) {
        const std::string piece = stream.push(id);
        EXPECT_TRUE(is_valid_utf8(piece) || !is_valid_utf8(text)) << name << " '" << text << "'";
        joined += piece;
      }
      joined += stream.finish();
      EXPECT_EQ(joined, text) << name;
    }
  }
}

TEST(Tokenizer, StreamHoldsAnUnfinishedCharacterBack) {
  const auto tokenizer = load_tokenizer(testdata("byte_level"));
  StreamDecoder stream(*tokenizer);
  const Ids bytes = {0xF0, 0x9F, 0xA6, 0x99, 'x'};  // this vocabulary's first 256 ids are the bytes
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stream.push(bytes[i]), "");
  EXPECT_EQ(stream.push(bytes[3]), "🦙");
  EXPECT_EQ(stream.push(0xE4), "");
  EXPECT_EQ(stream.push('x'), "\xE4x");  // broken for good: given out as it is
  stream.push(0xE4);
  EXPECT_EQ(stream.finish(), "\xE4");
}

TEST(Tokenizer, SpecialTokensAreParsedOnlyWhenAsked) {
  const auto tokenizer = load_tokenizer(testdata("byte_level"));
  const int32_t end = *tokenizer->id_of("<|im_end|>");
  EXPECT_EQ(tokenizer->encode("<|im_end|>"), Ids{end});
  const Ids spelled = tokenizer->encode("<|im_end|>", {.parse_special = false});
  EXPECT_GT(spelled.size(), 1u);
  EXPECT_EQ(tokenizer->decode(spelled), "<|im_end|>");
  EXPECT_EQ(tokenizer->decode(Ids{end}), "");
  EXPECT_EQ(tokenizer->decode(Ids{end}, false), "<|im_end|>");
  EXPECT_EQ(tokenizer->encode("<tool>", {.parse_special = false}), Ids{*tokenizer->id_of("<tool>")});
  EXPECT_FALSE(tokenizer->is_special(*tokenizer->id_of("<tool>")));
}

TEST(Tokenizer, ReadsSpecialIdsFromTheFilesBeside) {
  const auto chat = load_tokenizer(testdata("byte_level"));
  EXPECT_EQ(chat->eos_id(), chat->id_of("<|im_end|>"));
  EXPECT_EQ(chat->pad_id(), chat->id_of("<|endoftext|>"));
  EXPECT_FALSE(chat->bos_id());
  EXPECT_EQ(chat->info().stop_ids, (Ids{*chat->id_of("<|endoftext|>"), *chat->id_of("<|im_end|>")}));
  EXPECT_EQ(chat->info().kind, "byte-level BPE");
  const auto base = load_tokenizer(testdata("sentencepiece"));
  EXPECT_EQ(base->bos_id(), 1);
  EXPECT_EQ(base->eos_id(), 2);
  EXPECT_EQ(base->info().unk, 0);
  EXPECT_EQ(base->info().stop_ids, Ids{2});
}

TEST(Tokenizer, ContinuedTextHasNoDummyPrefix) {
  const auto tokenizer = load_tokenizer(testdata("sentencepiece"));
  Ids ids = tokenizer->encode("the cat", {.add_special = true});
  const Ids rest = tokenizer->encode(" sat", {.add_special = true, .continues = true});
  ids.insert(ids.end(), rest.begin(), rest.end());
  EXPECT_EQ(tokenizer->decode(ids), "the cat sat");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 1), 1);
}

// Without a post-processor, tokenizer_config.json decides what stands around a text.
TEST(Tokenizer, AddBosAndEosOfTheConfig) {
  const TemporaryDirectory directory;
  auto file = read_json_file(testdata("sentencepiece/tokenizer.json"));
  file["post_processor"] = nullptr;
  host::write_file_atomically(directory.path("tokenizer.json"), file.dump());
  const auto around = [&](const nlohmann::json& config, EncodeOptions options) {
    host::write_file_atomically(directory.path("tokenizer_config.json"), config.dump());
    return load_tokenizer(directory.path())->encode("<unk>", options);
  };
  nlohmann::json config = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  EXPECT_EQ(around(config, {.add_special = true}), (Ids{0}));
  config["add_bos_token"] = true;
  EXPECT_EQ(around(config, {.add_special = true}), (Ids{1, 0}));
  config["add_eos_token"] = true;
  EXPECT_EQ(around(config, {.add_special = true}), (Ids{1, 0, 2}));
  EXPECT_EQ(around(config, {.add_special = true, .open_end = true}), (Ids{1, 0}));
  EXPECT_EQ(around(config, {.add_special = true, .continues = true}), (Ids{0, 2}));
  EXPECT_EQ(around(config, {}), (Ids{0}));
}

TEST(Tokenizer, IdsOfAPaddedEmbeddingDecodeToNothing) {
  const auto tokenizer = load_tokenizer(testdata("byte_level"));
  EXPECT_EQ(tokenizer->decode(Ids{'a', tokenizer->vocab_size() + 7, 'b'}), "ab");
  EXPECT_THAT(message_of<base::InputError>([&] { tokenizer->decode(Ids{-1}); }), HasSubstr("ids from 0"));
}

// Table look-ups and queue moves that encoding `text` takes.
double merge_operations(const Tokenizer& tokenizer, std::string_view text) {
  int64_t all = 0;
  const base::CountAnswers listener([&](std::string_view place, int64_t count) {
    if (place == "tokenizer.merge_operations") all += count;
    return count;
  });
  tokenizer.encode(text);
  return static_cast<double>(all);
}

// Work per symbol may grow by the logarithm only: doubling a word of one kind must not double the work per symbol.
TEST(Tokenizer, WorkGrowsLinearlyWithOneEndlessWord) {
  for (const char* name : {"byte_level", "sentencepiece"}) {
    const auto tokenizer = load_tokenizer(testdata(name));
    for (const std::string unit : {"the", "a", "thecatsat", "é"}) {
      std::string text;
      while (text.size() < 1 << 12) text += unit;
      const double small = merge_operations(*tokenizer, text);
      const double large = merge_operations(*tokenizer, text + text + text + text);
      EXPECT_LT(large / small, 4.2) << name << " " << unit;
      EXPECT_LT(small, 12.0 * static_cast<double>(text.size())) << name << " " << unit;
    }
  }
}

// A thread remembers words of the tokenizer that it used last.
TEST(Tokenizer, RememberedWordsAreTheTokenizersOwn) {
  const auto one = load_tokenizer(testdata("byte_level"));
  const auto other = load_tokenizer(testdata("sentencepiece"));
  const std::string text = "the cat sat on the mat";
  const Ids first = one->encode(text);
  const Ids second = other->encode(text);
  EXPECT_NE(first, second);
  EXPECT_EQ(one->encode(text), first);
  EXPECT_EQ(one->encode(text), first);
  EXPECT_EQ(other->encode(text), second);
}

TEST(Tokenizer, SavedFilesReadTheSame) {
  const TemporaryDirectory directory;
  const auto tokenizer = load_tokenizer(testdata("byte_level"));
  tokenizer->save(directory.path());
  const auto again = load_tokenizer(directory.path());
  EXPECT_EQ(again->encode("the cat <|im_end|>"), tokenizer->encode("the cat <|im_end|>"));
  EXPECT_EQ(again->info().chat_template, tokenizer->info().chat_template);
}

TEST(Tokenizer, SavingKeepsFurtherStopIds) {
  const TemporaryDirectory from, to;
  load_tokenizer(testdata("byte_level"))->save(from.path());
  host::write_file_atomically(from.path("generation_config.json"), R"({"eos_token_id": [3, 5]})");
  const auto tokenizer = load_tokenizer(from.path());
  tokenizer->save(to.path());
  EXPECT_EQ(host::read_file(to.path("generation_config.json")), R"({"eos_token_id": [3, 5]})");
  EXPECT_GE(tokenizer->info().stop_ids.size(), 2u);
  EXPECT_EQ(load_tokenizer(to.path())->info().stop_ids, tokenizer->info().stop_ids);
}

// gpt-oss: generation goes on behind no call, also where no generation_config.json names its mark.
TEST(Tokenizer, ACallOfHarmonyEndsATurn) {
  const TemporaryDirectory directory;
  auto file = read_json_file(testdata("byte_level/tokenizer.json"));
  auto& added = file.at("added_tokens");
  const int32_t first = added.back().at("id").get<int32_t>() + 1;
  auto token = added.back();
  for (const char* mark : {"<|return|>", "<|call|>"}) {
    token["id"] = first + (mark[2] == 'c');
    token["content"] = mark;
    token["special"] = true;
    added.push_back(token);
  }
  host::write_file_atomically(directory.path("tokenizer.json"), file.dump());
  const auto stops = [&](const char* eos) {
    host::write_file_atomically(directory.path("tokenizer_config.json"), nlohmann::json{{"eos_token", eos}}.dump());
    return load_tokenizer(directory.path())->info().stop_ids;
  };
  EXPECT_EQ(stops("<|return|>"), (Ids{first, first + 1}));
  EXPECT_EQ(stops("<|im_end|>").size(), 1U);
}

TEST(Tokenizer, UnknownCharactersInARowAreOneTokenWhereTheFileFusesThem) {
  TemporaryDirectory directory;
  const auto unknowns = [&](bool fuse) {
    nlohmann::json file = read_json_file(testdata("sentencepiece/tokenizer.json"));
    file["model"]["byte_fallback"] = false;
    file["model"]["fuse_unk"] = fuse;
    host::write_file_atomically(directory.path("tokenizer.json"), file.dump());
    const std::vector<int32_t> ids = load_tokenizer(directory.path())->encode("\u0414\u0436 \u0414a\u0436");
    return std::count(ids.begin(), ids.end(), 0);
  };
  EXPECT_EQ(unknowns(false), 4);
  EXPECT_EQ(unknowns(true), 3) << "two of them stand side by side";
}

class BadTokenizer : public testing::Test {
 protected:
  std::string load_with(const std::function<void(nlohmann::json&)>& spoil) {
    nlohmann::json file = read_json_file(testdata("byte_level/tokenizer.json"));
    spoil(file);
    host::write_file_atomically(directory_.path("tokenizer.json"), file.dump());
    return message_of<base::InputError>([&] { load_tokenizer(directory_.path()); });
  }
  TemporaryDirectory directory_;
};

TEST_F(BadTokenizer, WithoutVocabulary) {
  const std::string path = directory_.path("tokenizer.json");
  EXPECT_EQ(load_with([](auto& file) { file["model"]["vocab"] = nlohmann::json::object(); }),
            "[" + path + "] expected a vocabulary of tokens and ids, got none; try the model's complete directory");
  EXPECT_EQ(load_with([](auto& file) { file.erase("model"); }),
            "[" + path + "] expected a model with a vocabulary, got none; try the model's complete directory");
}

TEST_F(BadTokenizer, DirectoryWithoutTokenizer) {
  EXPECT_THAT(message_of<base::InputError>([&] { load_tokenizer(directory_.path()); }), HasSubstr("no vocabulary"));
  std::filesystem::create_directory(directory_.path("hf"));
  std::ofstream(directory_.path("hf/config.json")) << "{}";
  EXPECT_THAT(message_of<base::InputError>([&] { load_tokenizer(directory_.path()); }),
              testing::EndsWith("; try " + directory_.path("hf") + ", which has config.json"));
  EXPECT_THAT(message_of<base::InputError>([] { load_tokenizer("/nowhere"); }), HasSubstr("/nowhere"));
}

TEST_F(BadTokenizer, UnknownComponentsAreNamed) {
  EXPECT_THAT(load_with([](auto& file) { file["normalizer"] = {{"type", "Uppercase"}}; }), HasSubstr("'Uppercase'"));
  EXPECT_THAT(load_with([](auto& file) { file["pre_tokenizer"] = {{"type", "Syllables"}}; }), HasSubstr("'Syllables'"));
  EXPECT_THAT(load_with([](auto& file) { file["decoder"] = {{"type", "CTC"}}; }), HasSubstr("'CTC'"));
  EXPECT_THAT(load_with([](auto& file) {
                file["post_processor"] = {{"type", "GptProcessing"}};
              }),
              HasSubstr("'GptProcessing'"));
  EXPECT_THAT(load_with([](auto& file) { file["model"]["type"] = "Bigram"; }), HasSubstr("'Bigram'"));
  EXPECT_THAT(load_with([](auto& file) { file["model"]["dropout"] = 0.1; }), HasSubstr("'dropout'"));
}

TEST_F(BadTokenizer, HostileNumbersAndMerges) {
  EXPECT_THAT(load_with([](auto& file) { file["model"]["vocab"]["x"] = 1LL << 60; }), HasSubstr("an id below"));
  EXPECT_THAT(load_with([](auto& file) { file["added_tokens"][0]["id"] = -5; }), HasSubstr("an id below"));
  EXPECT_THAT(load_with([](auto& file) {
                file["added_tokens"].push_back(file["added_tokens"][0]);  // the same again is no other
                file["added_tokens"].push_back(file["added_tokens"][0]);
                file["added_tokens"].back()["content"] = "<other>";
              }),
              HasSubstr(" and '<other>'"));
  EXPECT_THAT(load_with([](auto& file) { file["model"]["vocab"]["zzz"] = file["model"]["vocab"]["a"]; }),
              HasSubstr("expected an id of its own for each token, got "));
  EXPECT_THAT(load_with([](auto& file) { file["model"]["merges"].push_back("zz qq"); }), HasSubstr("'zz'"));
  EXPECT_THAT(load_with([](auto& file) { file["model"]["merges"].push_back(7); }), HasSubstr("Hugging Face form"));
  EXPECT_THAT(load_with([](auto& file) {
                file["post_processor"] = {{"type", "TemplateProcessing"},
                                          {"single", {{{"SpecialToken", {{"id", "x"}}}}}},
                                          {"special_tokens", {{"x", {{"ids", {100000}}}}}}};
              }),
              HasSubstr("got id 100000"));
  EXPECT_THAT(load_with([](auto& file) { file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(x"; }),
              HasSubstr("expected a pattern without a ( that nothing closes, got (x"));
}

TEST_F(BadTokenizer, MalformedJsonNamesTheLine) {
  host::write_file_atomically(directory_.path("tokenizer.json"), "{\n \"model\": {\n  oops\n}}");
  EXPECT_THAT(message_of<base::InputError>([&] { load_tokenizer(directory_.path()); }),
              HasSubstr("tokenizer.json:3] expected well-formed JSON"));
}

TEST_F(BadTokenizer, FilesBesideItAreNamedForValuesOfAWrongType) {
  const auto error = [&](const std::string& name, const std::string& content) {
    for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
      host::write_file_atomically(directory_.path(file), host::read_file(testdata(std::string("byte_level/") + file)));
    host::write_file_atomically(directory_.path(name), content);
    std::string message = message_of<base::InputError>([&] { load_tokenizer(directory_.path()); });
    std::filesystem::remove(directory_.path(name));
    const std::string head = "[" + directory_.path() + "/";
    EXPECT_TRUE(message.starts_with(head)) << message;
    return message.substr(std::min(head.size(), message.size()));
  };
  const std::string form = "] expected a file of the Hugging Face form, got [json.exception.";
  for (const char* config :
       {R"({"chat_template": [{"name": "default", "template": null}]})", R"({"chat_template": [{"name": "default"}]})",
        R"({"chat_template": [{"name": 5, "template": "x"}]})", R"({"eos_token": {"content": 5}})",
        R"({"added_tokens_decoder": {"3": {"content": null}}})"})
    EXPECT_THAT(error("tokenizer_config.json", config), HasSubstr("tokenizer_config.json" + form)) << config;
  EXPECT_THAT(error("generation_config.json", R"({"eos_token_id": [1, "x"]})"),
              HasSubstr("generation_config.json" + form));
  EXPECT_THAT(error("config.json", R"({"eos_token_id": [null]})"), testing::StartsWith("config.json" + form));
  EXPECT_THAT(error("special_tokens_map.json", R"({"sep_token": {"content": []}})"),
              HasSubstr("special_tokens_map.json" + form));
}

// Vectors of llama.cpp and llama2.c over real vocabularies.
struct SharedVectors {
  const char* tokenizer;
  const char* vectors;
};
class SharedTokenizer : public testing::TestWithParam<SharedVectors> {};

TEST_P(SharedTokenizer, IdsEqualLlamaCpp) {
  const std::string directory = shared_data(std::string("tokenizers/") + GetParam().tokenizer);
  const std::string vectors = shared_data("tokenizers/vectors");
  if (directory.empty() || vectors.empty()) GTEST_SKIP() << "no shared data on this machine";
  const auto tokenizer = load_tokenizer(directory);
  const std::string separator = "\n__ggml_vocab_test__\n";
  const std::string inputs = host::read_file(vectors + "/ggml-vocab-" + GetParam().vectors + ".gguf.inp");
  std::ifstream outputs(vectors + "/ggml-vocab-" + GetParam().vectors + ".gguf.out");
  size_t at = 0;
  int compared = 0;
  for (std::string line; std::getline(outputs, line); ++compared) {
    const size_t end = std::min(inputs.find(separator, at), inputs.size());
    const std::string text = inputs.substr(at, end - at);
    Ids expected;
    std::istringstream words(line);
    for (int32_t id = 0; words >> id;) expected.push_back(id);
    EXPECT_EQ(tokenizer->encode(text), expected) << "'" << text << "'";
    EXPECT_EQ(tokenizer->decode(expected), text);
    at = end + separator.size();
  }
  EXPECT_EQ(compared, 46);
}

INSTANTIATE_TEST_SUITE_P(All, SharedTokenizer,
                         testing::Values(SharedVectors{"gpt2", "gpt-2"}, SharedVectors{"qwen2", "qwen2"},
                                         SharedVectors{"ort-llama2", "llama-spm"}));

TEST(SharedTokenizer, IdsEqualLlama2c) {
  const std::string directory = shared_data("models/stories260k-llama");
  if (directory.empty()) GTEST_SKIP() << "no shared data on this machine";
  const auto tokenizer = load_tokenizer(directory + "/hf-llama");
  for (const auto& vector : read_json_file(directory + "/tokenizer_vectors.json")) {
    const std::string text = vector.at("text");
    EXPECT_EQ(tokenizer->encode(text, {.add_special = true}), vector.at("ids_llama2c").get<Ids>()) << text;
    EXPECT_EQ(tokenizer->decode(vector.at("ids_llama2c").get<Ids>()), text);
  }
}

// Ids of Hugging Face tokenizers 0.23.3: SmolLM2 has no unk, and no tokens for 21 bytes, U+0004 and U+0013 among them.
TEST(SharedTokenizer, BytesThatSmolLM2LacksAreLeftOut) {
  const std::string directory = shared_data("tokenizers/smollm2");
  if (directory.empty()) GTEST_SKIP() << "no shared data on this machine";
  const auto tokenizer = load_tokenizer(directory);
  EXPECT_EQ(tokenizer->encode("ab\x04"
                              "c\x04\x04"
                              "d"),
            (Ids{369, 83, 84}));
  EXPECT_EQ(tokenizer->encode("a\xE4\xB8\xAD\x13\xE6\x96\x87"), (Ids{81, 28589, 29184}));
  EXPECT_EQ(tokenizer->encode("\xFF\x04"), Ids());
}

}  // namespace
}  // namespace collimate::text
