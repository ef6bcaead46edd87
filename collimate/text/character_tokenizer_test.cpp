#include "collimate/text/character_tokenizer.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "collimate/host/atomic_file.h"
#include "collimate/host/file_io.h"
#include "collimate/text/files.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;

CharacterVocabulary digits() {
  return {.specials = {"<pad>", "<eos>", "<unk>"},
          .tokens = {"0", "1", "2", ",", "é", "=>", "\n"},
          .bos = {},
          .eos = "<eos>",
          .pad = "<pad>",
          .unk = "<unk>",
          .separator = {},
          .chat_template = "{{ x }}"};
}

TEST(CharacterTokenizer, OneIdPerCharacter) {
  const CharacterTokenizer tokenizer(digits());
  EXPECT_EQ(tokenizer.encode("210,é=>\n"), (Ids{5, 4, 3, 6, 7, 8, 9}));
  EXPECT_EQ(tokenizer.decode(Ids{5, 7, 8, 1, 0}), "2é=>");
  EXPECT_EQ(tokenizer.decode(Ids{5, 1}, false), "2<eos>");
  EXPECT_EQ(tokenizer.encode("1<eos>"), (Ids{4, 1}));
  EXPECT_EQ(tokenizer.encode("=x你\xFF"), (Ids{2, 2, 2, 2}));  // one unk per character or broken byte
  EXPECT_EQ(tokenizer.vocab_size(), 10);
  EXPECT_EQ(tokenizer.info().stop_ids, Ids{1});
}

TEST(CharacterTokenizer, SavedFileReadsTheSameIds) {
  CharacterVocabulary vocabulary = digits();
  vocabulary.specials.push_back("<bos>");
  vocabulary.bos = "<bos>";
  const CharacterTokenizer tokenizer(vocabulary);
  const TemporaryDirectory directory;
  tokenizer.save(directory.path());
  const auto loaded = load_tokenizer(directory.path());
  for (const std::string text : {"", "012,é\n1=>2", "7x<eos>", "<pad>\r\n你\xFF", "=>=>=", "<bos>1"}) {
    EXPECT_EQ(loaded->encode(text), tokenizer.encode(text)) << text;
    EXPECT_EQ(loaded->encode(text, {.add_special = true}), tokenizer.encode(text, {.add_special = true})) << text;
    EXPECT_EQ(loaded->decode(tokenizer.encode(text)), tokenizer.decode(tokenizer.encode(text))) << text;
  }
  EXPECT_EQ(loaded->vocab_size(), tokenizer.vocab_size());
  EXPECT_EQ(loaded->bos_id(), tokenizer.bos_id());
  EXPECT_EQ(loaded->eos_id(), tokenizer.eos_id());
  EXPECT_EQ(loaded->pad_id(), tokenizer.pad_id());
  EXPECT_EQ(loaded->info().unk, tokenizer.info().unk);
  EXPECT_EQ(loaded->info().chat_template, "{{ x }}");
}

TEST(CharacterTokenizer, DiffersAtTheFirstIdThatBothHaveAsAnotherToken) {
  const CharacterTokenizer tokenizer(digits());
  CharacterVocabulary longer = digits(), other = digits();
  longer.tokens.push_back("x");
  other.tokens[2] = "3";
  other.tokens[4] = "e";
  EXPECT_EQ(first_difference(tokenizer, CharacterTokenizer(longer)), std::nullopt);
  EXPECT_EQ(first_difference(CharacterTokenizer(longer), tokenizer), std::nullopt);
  EXPECT_EQ(first_difference(tokenizer, CharacterTokenizer(other)), 5);
  const TemporaryDirectory directory;
  EXPECT_FALSE(has_tokenizer(directory.path()));
  tokenizer.save(directory.path());
  EXPECT_TRUE(has_tokenizer(directory.path()));
  const std::string path = directory.path("tokenizer.json");
  EXPECT_EQ(first_difference(tokenizer, *load_tokenizer(directory.path())), std::nullopt) << "another kind of file";
  nlohmann::json file = nlohmann::json::parse(host::read_file(path));
  ASSERT_EQ(file["model"]["vocab"].erase("1"), 1U);
  host::write_file_atomically(path, file.dump());
  const auto with_unused_id = load_tokenizer(directory.path());
  EXPECT_EQ(first_difference(tokenizer, *with_unused_id), std::nullopt);
  EXPECT_EQ(first_difference(*with_unused_id, tokenizer), std::nullopt);
}

TEST(CharacterTokenizer, SavingKeepsFurtherStopIds) {
  const TemporaryDirectory from, to;
  host::write_file_atomically(from.path("tokenizer_config.json"), R"({"char_ords": [48, 49]})");  // S, E, P, U, 0, 1
  host::write_file_atomically(from.path("generation_config.json"), R"({"eos_token_id": [1, 4]})");
  load_tokenizer(from.path())->save(to.path());
  EXPECT_EQ(host::read_file(to.path("generation_config.json")), R"({"eos_token_id": [1, 4]})");
  EXPECT_EQ(load_tokenizer(to.path())->info().stop_ids, (Ids{1, 4}));
}

TEST(CharacterTokenizer, BadVocabulariesAndTexts) {
  const auto message = [](CharacterVocabulary vocabulary) {
    return message_of<base::InputError>([&] { CharacterTokenizer tokenizer(std::move(vocabulary)); });
  };
  CharacterVocabulary vocabulary = digits();
  vocabulary.tokens.clear();
  EXPECT_THAT(message(vocabulary), HasSubstr("at least one character"));
  vocabulary.tokens = {"1", "1"};
  EXPECT_THAT(message(vocabulary), HasSubstr("distinct"));
  vocabulary.tokens = {"1"};
  vocabulary.eos = "<end>";
  EXPECT_THAT(message(vocabulary), HasSubstr("'<end>'"));
  vocabulary = digits();
  vocabulary.unk.clear();
  const CharacterTokenizer strict(vocabulary);
  EXPECT_EQ(message_of<base::InputError>([&] { strict.encode("12z"); }),
            "[character tokenizer] expected characters of its vocabulary, got 'z' at byte 2; try a vocabulary with an "
            "unk token");
}

// verl's arithmetic model has code points in tokenizer_config.json instead of a tokenizer.json.
TEST(CharacterTokenizer, ReadsCodePointsOfAConfig) {
  const TemporaryDirectory directory;
  host::write_file_atomically(directory.path("tokenizer_config.json"), R"({"char_ords": [48, 49, 44, 58, 228]})");
  host::write_file_atomically(directory.path("config.json"), R"({"eos_token_id": 1})");
  const auto tokenizer = load_tokenizer(directory.path());
  EXPECT_EQ(tokenizer->encode("0,1:äSE?"), (Ids{4, 6, 5, 7, 8, 0, 1, 3}));
  EXPECT_EQ(tokenizer->eos_id(), 1);
  EXPECT_EQ(tokenizer->pad_id(), 2);
  EXPECT_EQ(tokenizer->info().stop_ids, Ids{1});
  EXPECT_EQ(tokenizer->vocab_size(), 9);
}

TEST(CharacterTokenizer, VerlArithmeticModel) {
  const std::string directory = shared_data("models/verl-arith-llama-random");
  if (directory.empty()) GTEST_SKIP() << "no shared data on this machine";
  const auto tokenizer = load_tokenizer(directory);
  EXPECT_EQ(tokenizer->vocab_size(), 16);
  EXPECT_EQ(tokenizer->encode("09,:"), (Ids{4, 13, 14, 15}));
  EXPECT_EQ(tokenizer->info().separator, "S");
}

}  // namespace
}  // namespace collimate::text
