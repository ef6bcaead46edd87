#include "collimate/generate/draft.h"

#include "tests/support/generate/tiny_service.h"

namespace collimate::generate {
namespace {

using testing_support::TinyModel;

Sequence sequence_of(int64_t uid, size_t tokens) {
  Sequence sequence;
  sequence.uid = uid;
  sequence.ids.assign(tokens, static_cast<int32_t>(uid));
  sequence.prompt_tokens = static_cast<int64_t>(tokens) - 1;
  return sequence;
}

// The draft's cache has room for the longer of two sequences or for the shorter, not for both.
TEST(Draft, ASequenceThatFindsNoBlocksDoesNotGuessUntilThereAreSome) {
  TinyModel tiny;
  Draft draft(tiny.model, {}, {.blocks = 3, .batch_tokens = 64, .vocabulary = 61}, 1);
  Sequence longer = sequence_of(3, 30), shorter = sequence_of(4, 20);
  const std::vector<Guess> both = {{&longer, 4}, {&shorter, 4}};
  for (int step = 0; step < 3; ++step) {
    draft.propose(both);
    EXPECT_EQ(longer.speculation.proposed.size(), 4U) << step;
    EXPECT_TRUE(shorter.speculation.proposed.empty()) << step;
  }
  draft.forget(longer.uid);
  const Guess alone{&shorter, 4};
  draft.propose({&alone, 1});
  EXPECT_EQ(shorter.speculation.proposed.size(), 4U);
}

TEST(Draft, ShadowsOfOtherSequencesMakeRoom) {
  TinyModel tiny;
  Draft draft(tiny.model, {}, {.blocks = 3, .batch_tokens = 64, .vocabulary = 61}, 1);
  Sequence first = sequence_of(3, 30), second = sequence_of(4, 30);
  for (Sequence* sequence : {&first, &second, &first}) {
    const Guess guess{sequence, 4};
    draft.propose({&guess, 1});
    EXPECT_EQ(sequence->speculation.proposed.size(), 4U);
  }
}

}  // namespace
}  // namespace collimate::generate
