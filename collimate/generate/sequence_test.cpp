#include "collimate/generate/sequence.h"

#include <gtest/gtest.h>

#include "tests/support/generate/tiny_service.h"

namespace collimate::generate {
namespace {

const testing_support::PieceTokenizer kLetters({"a", "b", "<eos>", "c", "d", "e"});

// Why a sequence with a prompt of 10 ends after the completion.
Finish finish(const SamplingParams& params, const std::vector<int32_t>& completion, int64_t max_length = 20) {
  Sequence sequence;
  sequence.params = params;
  sequence.ids.assign(10, 0);
  sequence.prompt_tokens = 10;
  sequence.max_length = max_length;
  const std::vector<int32_t> eos = {2, 3};
  sequence.follow_from_start(eos, &kLetters);
  for (const int32_t token : completion) sequence.append(token, 0.0F, 1);
  return finish_of(sequence, eos);
}

TEST(Sequence, ReasonsToFinishInOrder) {
  SamplingParams params;
  params.max_tokens = 3;
  params.stop_ids = {4};
  params.stop = {"ae"};
  EXPECT_EQ(finish(params, {5, 5, 3}), Finish::kEos);
  EXPECT_EQ(finish(params, {5, 5, 4}), Finish::kStop);
  EXPECT_EQ(finish(params, {5, 0, 5}), Finish::kStop) << "a stop string goes before the length";
  EXPECT_EQ(finish(params, {5, 5, 5}), Finish::kLength);
  EXPECT_EQ(finish(params, {5, 5}, 12), Finish::kLength);
  EXPECT_EQ(finish(params, {5, 5}, 13), Finish::kRunning);
  EXPECT_EQ(finish(params, {5}), Finish::kRunning) << "the prompt's text is not looked at";
  params.min_tokens = 2;
  EXPECT_EQ(finish(params, {0, 5}), Finish::kRunning);
  EXPECT_EQ(finish(params, {5, 0, 5}), Finish::kStop);
  params.ignore_eos = true;
  EXPECT_EQ(finish(params, {3}), Finish::kRunning);
}

TEST(Sequence, AStopStringMayBeginWithTheSpaceOfTheFirstToken) {
  const auto words = text::load_tokenizer(COLLIMATE_SOURCE_DIR "/collimate/text/testdata/sentencepiece");
  Sequence sequence;
  sequence.params.stop = {" cat"};
  sequence.ids = words->encode("the", {.add_special = true});
  sequence.prompt_tokens = sequence.length();
  sequence.max_length = 20;
  sequence.follow_from_start({}, words.get());
  sequence.append(*words->id_of("\u2581cat"), 0.0F, 1);
  EXPECT_EQ(finish_of(sequence, {}), Finish::kStop);
}

}  // namespace
}  // namespace collimate::generate
