// Tokenizers of every kind against what `tokenizers`, SentencePiece and tiktoken make of them: the vectors of
// testdata/kinds (tests/golden/make_tokenizers.py).
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "collimate/host/atomic_file.h"
#include "collimate/text/decoder.h"
#include "collimate/text/files.h"
#include "collimate/text/model_json.h"
#include "collimate/text/normalizer.h"
#include "collimate/text/pre_tokenizer.h"
#include "collimate/text/tokenizer.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;

std::string streamed(StreamDecoder& stream, const Ids& ids) {
  std::string joined;
  for (const int32_t id : ids) joined += stream.push(id);
  return joined + stream.finish();
}

// U+FFFD where a text is not well-formed UTF-8: so Hugging Face decodes.
std::string replaced(const std::string& text) {
  return nlohmann::json::parse(nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

// A vector's text; as bytes where it is not well-formed UTF-8.
std::string text_of(const nlohmann::json& vector) {
  if (vector.contains("text")) return vector.at("text");
  const auto bytes = vector.at("bytes").get<std::vector<uint8_t>>();
  return {bytes.begin(), bytes.end()};
}

// Gives a tokenizer of testdata/kinds, which is read once.
Tokenizer& kind(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Tokenizer>> read;
  std::unique_ptr<Tokenizer>& tokenizer = read[name];
  if (!tokenizer) tokenizer = load_tokenizer(testdata("kinds/" + name));
  return *tokenizer;
}

TEST(TokenizerKinds, IdsAndTextEqualTheReferenceVectors) {
  std::set<std::string> kinds;
  for (const auto& vector : read_json_file(testdata("kinds/vectors.json"))) {
    const std::string name = vector.at("tokenizer");
    const Tokenizer& tokenizer = kind(name);
    kinds.insert(tokenizer.info().kind);
    const std::string text = text_of(vector);
    const Ids ids = tokenizer.encode(text, {.add_special = true});
    ASSERT_EQ(ids, vector.at("ids").get<Ids>()) << name << " '" << text << "'";
    EXPECT_EQ(replaced(tokenizer.decode(ids)), vector.at("decoded").get<std::string>()) << name << " '" << text << "'";
    if (vector.contains("with_special")) {
      EXPECT_EQ(replaced(tokenizer.decode(ids, false)), vector.at("with_special").get<std::string>()) << name;
    }
    StreamDecoder stream(tokenizer);
    EXPECT_EQ(streamed(stream, ids), tokenizer.decode(ids)) << name << " '" << text << "'";
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"BPE", "byte-level BPE", "SentencePiece BPE with byte fallback", "Unigram",
                                          "Unigram with byte fallback", "WordPiece", "characters", "one id per word"}));
}

// Adds the type of a component of a tokenizer.json or, of a Sequence, those of its parts.
void add_types(const nlohmann::json& component, const char* parts, std::set<std::string>& types) {
  if (component.is_null()) return;
  if (component.at("type") != "Sequence") {
    types.insert(component.at("type"));
    return;
  }
  for (const nlohmann::json& part : component.at(parts)) add_types(part, parts, types);
}

// Gives the types that a reader knows, which its error lists: "expected a normalizer among NFC, NFD, got 'none'".
std::set<std::string> known_types(const std::function<void(const nlohmann::json&)>& read) {
  const std::string error = message_of<base::InputError>([&] { read({{"type", "none"}}); });
  const std::string mark = " among ";
  const size_t begin = error.find(mark) + mark.size();
  std::istringstream list(error.substr(begin, error.find(", got") - begin));
  std::set<std::string> types;
  for (std::string type; std::getline(list >> std::ws, type, ',');) types.insert(type);
  types.erase("Sequence");
  return types;
}

TEST(TokenizerKinds, HaveEveryComponent) {
  std::set<std::string> names, models, normalizers, pre_tokenizers, decoders;
  for (const auto& vector : read_json_file(testdata("kinds/vectors.json"))) names.insert(vector.at("tokenizer"));
  for (const std::string& name : names) {
    const std::string path = testdata("kinds/" + name + "/tokenizer.json");
    if (!file_exists(path)) continue;
    const nlohmann::json file = read_json_file(path);
    models.insert(file.at("model").at("type"));
    add_types(file.at("normalizer"), "normalizers", normalizers);
    add_types(file.at("pre_tokenizer"), "pretokenizers", pre_tokenizers);
    add_types(file.at("decoder"), "decoders", decoders);
  }
  EXPECT_EQ(models, known_types([](nlohmann::json model) {
              model["vocab"] = nullptr;
              parse_model({{"model", model}}, "", false);
            }))
      << "a kind is a function of tests/golden/small_tokenizers.py";
  EXPECT_EQ(normalizers, known_types([](const nlohmann::json& json) { parse_normalizer(json, ""); }));
  EXPECT_EQ(pre_tokenizers, known_types([](const nlohmann::json& json) { parse_pre_tokenizer(json, ""); }));
  EXPECT_EQ(decoders, known_types([](const nlohmann::json& json) { parse_decoder(json, ""); }));
}

// A continuation is what the text of all ids has behind the prompt's, wherever the ids are cut.
TEST(TokenizerKinds, StreamsContinueAPrompt) {
  for (const char* name : {"bert", "gpt1", "t5", "prefixed", "falcon", "unigram_bytes"}) {
    const auto tokenizer = load_tokenizer(testdata(std::string("kinds/") + name));
    const Ids ids = tokenizer->encode("the model's weights, and  größe of 12 layers");
    for (size_t cut = 0; cut <= ids.size(); ++cut) {
      const Ids prompt(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(cut));
      const Ids rest(ids.begin() + static_cast<std::ptrdiff_t>(cut), ids.end());
      StreamDecoder stream(*tokenizer);
      stream.follow(prompt);
      EXPECT_EQ(tokenizer->decode(prompt) + streamed(stream, rest), tokenizer->decode(ids)) << name << " " << cut;
    }
  }
}

// Text that was streamed never changes: every beginning of the ids streams to a beginning of the text.
TEST(TokenizerKinds, StreamsOnlyGrow) {
  for (const auto& vector : read_json_file(testdata("kinds/vectors.json"))) {
    const Tokenizer& tokenizer = kind(vector.at("tokenizer"));
    StreamDecoder stream(tokenizer);
    std::string so_far;
    const Ids ids = vector.at("ids");
    for (const int32_t id : ids) so_far += stream.push(id);
    EXPECT_TRUE(tokenizer.decode(ids).starts_with(so_far)) << vector.dump();
  }
}

TEST(TokenizerKinds, ByteFallbackKeepsAnyBytes) {
  const auto tokenizer = load_tokenizer(testdata("kinds/unigram_bytes"));
  for (const std::string text : {"a\xFF\xFEz", "\xE4\xBD", "x \xF0\x9F\xA6 y"})
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

// Bytes of no character are kept where the vocabulary has tokens for all, and nowhere else; no tokenizer refuses them.
TEST(TokenizerKinds, BrokenBytesAreKeptOrUnknown) {
  const std::set<std::string> keep = {"bloom", "falcon",  "fixed_length", "llama3",       "moonshot",
                                      "qwen",  "scripts", "sp_llama",     "unigram_bytes"};
  for (const char* name :
       {"bert", "bloom", "falcon", "few_bytes", "few_bytes_unk", "fixed_length", "gpt1", "llama3", "moonshot",
        "prefixed", "qwen", "scripts", "sp_llama", "sp_unigram", "t5", "unigram_bytes"}) {
    const auto tokenizer = load_tokenizer(testdata(std::string("kinds/") + name));
    for (const std::string text : {"the\xFF model", "\xFFthe \xFF", "größe \xFF 日本\xFF"}) {
      const std::string back = tokenizer->decode(tokenizer->encode(text));
      const auto expected = keep.count(name) > 0 ? std::count(text.begin(), text.end(), '\xFF') : 0;
      EXPECT_EQ(std::count(back.begin(), back.end(), '\xFF'), expected) << name << " " << text;
    }
  }
}

// Text around bytes of no character is split as a text of its own; a space behind them is not one in front.
TEST(TokenizerKinds, SplitsAroundBrokenBytesLoseNothing) {
  for (const char* name : {"scripts", "fixed_length"}) {
    const auto tokenizer = load_tokenizer(testdata(std::string("kinds/") + name));
    for (const std::string text : {"a\xFF\xFE  zあ", "\xE4\xBD \xFF", "xあ \xF0\x9F\xA6 日b 本"}) {
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text) << name;
      const size_t broken = text.find_first_of("\xFF\xE4\xF0", 1);
      Ids apart = tokenizer->encode(text.substr(0, broken));
      for (const int32_t id : tokenizer->encode(text.substr(broken))) apart.push_back(id);
      EXPECT_EQ(tokenizer->encode(text), apart) << name;
    }
  }
}

// Decoders that strip the whole text, on words of one id.
class StrippedText : public testing::Test {
 protected:
  std::string decoded(int start, int stop, const Ids& ids) {
    const nlohmann::json file = {
        {"model", {{"type", "WordLevel"}, {"vocab", {{"_", 0}, {"a", 1}, {"__", 2}, {"_a_", 3}}}, {"unk_token", "a"}}},
        {"decoder",
         {{"type", "Sequence"},
          {"decoders",
           {{{"type", "Fuse"}}, {{"type", "Strip"}, {"content", "_"}, {"start", start}, {"stop", stop}}}}}}};
    host::write_file_atomically(directory_.path("tokenizer.json"), file.dump());
    const auto tokenizer = load_tokenizer(directory_.path());
    StreamDecoder stream(*tokenizer);
    const std::string text = tokenizer->decode(ids);
    EXPECT_EQ(streamed(stream, ids), text);
    return text;
  }
  TemporaryDirectory directory_;
};

TEST_F(StrippedText, LosesNoMoreThanItSaysAtEitherEnd) {
  EXPECT_EQ(decoded(2, 0, {0, 0, 0, 1, 0}), "_a_");
  EXPECT_EQ(decoded(2, 0, {0, 1, 0, 0}), "a__");
  EXPECT_EQ(decoded(0, 2, {0, 1, 0, 2, 0}), "_a__");
  EXPECT_EQ(decoded(0, 2, {1, 0, 1, 0}), "a_a");
  EXPECT_EQ(decoded(1, 1, {3, 0, 3}), "a___a");
  EXPECT_EQ(decoded(3, 0, {2, 2}), "_");
  EXPECT_EQ(decoded(0, 2, {1, 0, 0, 0, 1}), "a___a") << "what was held back comes when more follows";
}

// The two ends of words in one token are spaces, but for the last token's.
TEST(TokenizerKinds, TheLastTokenLosesEveryEndOfWord) {
  const TemporaryDirectory directory;
  const nlohmann::json file = {
      {"model", {{"type", "WordLevel"}, {"vocab", {{"a</w>b</w>", 0}, {"c</w>", 1}}}, {"unk_token", "c</w>"}}},
      {"decoder", {{"type", "BPEDecoder"}, {"suffix", "</w>"}}}};
  host::write_file_atomically(directory.path("tokenizer.json"), file.dump());
  const auto tokenizer = load_tokenizer(directory.path());
  EXPECT_EQ(tokenizer->decode(Ids{0, 1}), "a b c");
  EXPECT_EQ(tokenizer->decode(Ids{1, 0}), "c ab");
}

// The cut whose last token begins first is taken of those that are equally likely.
TEST(TokenizerKinds, EquallyLikelyCutsFallAsHuggingFaceHasThem) {
  const TemporaryDirectory directory;
  const auto model =
      nlohmann::json::parse(R"({"type": "Unigram", "vocab": [["<unk>", 0], ["a", -1], ["aa", -1]], "unk_id": 0})");
  host::write_file_atomically(directory.path("tokenizer.json"), nlohmann::json{{"model", model}}.dump());
  EXPECT_EQ(load_tokenizer(directory.path())->encode("aaa"), (Ids{1, 2}));
}

// A BPE file without unk leaves out what is no token; one that names an unk which is none is an error, as in
// tokenizers.
TEST(TokenizerKinds, WithoutUnkUnknownBytesAreLeftOut) {
  const TemporaryDirectory directory;
  const auto with = [&](const nlohmann::json& unk) {
    nlohmann::json file = read_json_file(testdata("kinds/few_bytes/tokenizer.json"));
    file["model"]["unk_token"] = unk;
    host::write_file_atomically(directory.path("tokenizer.json"), file.dump());
    return load_tokenizer(directory.path());
  };
  const std::string text =
      "th\x04"
      "e";
  EXPECT_EQ(with(nullptr)->encode(text), (Ids{372, 58}));  // "th", "e"
  EXPECT_THAT(message_of<base::InputError>([&] { with("<none>")->encode(text); }),
              HasSubstr("expected text that its vocabulary can express, got '\x04' (byte 0x04)"));
}

// Ids of Hugging Face tokenizers 0.23.3. U+1D2C0 is a number and U+1C89 a capital since Unicode 15 and 16, U+31350 Han
// since 15, U+11DE0 a number since 17; U+11938 would decompose, and U+10EFD move, from Unicode 13 and 15 on.
TEST(TokenizerKinds, CharactersAreOfTheUnicodeThatHuggingFaceHas) {
  const TemporaryDirectory directory;
  const auto ids = [&](const std::string& text, const char* part, const nlohmann::json& component) {
    nlohmann::json file = {{"model", {{"type", "WordLevel"}, {"unk_token", "<unk>"}}}};
    file["model"]["vocab"] = {{"<unk>", 0},  {"a", 1},           {"\U0001D2C0", 2},       {"x", 3},
                              {"\u1C8A", 4}, {"a\U00011938", 5}, {"a\u0345\U00010EFD", 6}};
    file[part] = component;
    host::write_file_atomically(directory.path("tokenizer.json"), file.dump());
    return load_tokenizer(directory.path())->encode(text);
  };
  const auto split = [](const char* pattern) {
    return nlohmann::json{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}};
  };
  EXPECT_EQ(ids("a\U0001D2C0a", "pre_tokenizer", split("\\p{N}")), (Ids{1, 2, 1}));
  EXPECT_EQ(
      ids("\U00031350", "normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", "\\p{Han}"}}}, {"content", "x"}}),
      (Ids{3}));
  EXPECT_EQ(ids("\u1C89", "normalizer", {{"type", "Lowercase"}}), (Ids{4}));
  EXPECT_EQ(ids("a\U00011938", "normalizer", {{"type", "NFD"}}), (Ids{5}));
  EXPECT_EQ(ids("a\u0345\U00010EFD", "normalizer", {{"type", "NFD"}}), (Ids{6}));
  EXPECT_EQ(ids("a\U00011DE0a", "pre_tokenizer", {{"type", "Digits"}, {"individual_digits", true}}), (Ids{1, 0, 1}));
}

TEST(TokenizerKinds, WhatIsNotSupportedIsNamed) {
  const TemporaryDirectory directory;
  const auto error = [&](const std::string& name, const nlohmann::json& part) {
    nlohmann::json file = read_json_file(testdata("kinds/t5/tokenizer.json"));
    file.merge_patch({{name, nullptr}});
    file[name] = part;
    host::write_file_atomically(directory.path("tokenizer.json"), file.dump());
    return message_of<base::InputError>([&] { load_tokenizer(directory.path()); });
  };
  EXPECT_THAT(error("normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}}),
              HasSubstr("expected a precompiled charsmap, got 3 bytes"));
  EXPECT_THAT(error("normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "?"}}), HasSubstr("base64"));
  EXPECT_THAT(error("decoder", {{"type", "Sequence"}, {"decoders", {{{"type", "Fuse"}}, {{"type", "ByteFallback"}}}}}),
              HasSubstr("Strip and Fuse alone behind the decoder that joins tokens, got ByteFallback"));
  EXPECT_THAT(error("pre_tokenizer", {{"type", "Metaspace"}, {"prepend_scheme", "last"}}), HasSubstr("'last'"));
  const nlohmann::json absent = {{"Regex", "(?~\\p{Han})"}};
  EXPECT_THAT(error("pre_tokenizer", {{"type", "Split"}, {"pattern", absent}, {"behavior", "Isolated"}}),
              HasSubstr("expected a pattern without (?~, got (?~\\p{Han})"));
  for (const nlohmann::json& length : {nlohmann::json(0), nlohmann::json(-1), nlohmann::json(2.5)})
    EXPECT_THAT(error("pre_tokenizer", {{"type", "FixedLength"}, {"length", length}}),
                HasSubstr("expected a FixedLength of at least one character, got " + length.dump()));
  const auto unigram = [&](const char* model) { return error("model", nlohmann::json::parse(model)); };
  EXPECT_THAT(unigram(R"({"type": "Unigram", "vocab": [["a", -1], ["a", -2]]})"),
              HasSubstr("each token once, got 'a' as 0 and 1"));
  EXPECT_THAT(unigram(R"({"type": "Unigram", "vocab": [["a", -1]], "unk_id": 1})"),
              HasSubstr("an unk_id below 1, got 1"));
  EXPECT_THAT(error("model", {{"type", "WordPiece"}, {"vocab", {{"a", 0}}}}), HasSubstr("'[UNK]'"));
}

}  // namespace
}  // namespace collimate::text
