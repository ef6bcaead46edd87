#include "collimate/text/row_reader.h"

#include <gmock/gmock.h>

#include "tests/support/base/error_of.h"

namespace collimate::text {
namespace {

std::string refusal_of(const std::string& text) {
  Row row = Row::parse(text);
  const auto shape = recognise_shape(row);
  EXPECT_TRUE(shape.has_value()) << text;
  return base::message_of<base::InputError>([&] { to_example(*shape, std::move(row), {"f.jsonl", 0, 7}); });
}

TEST(RowReader, ANumberIsNoAnswer) {
  EXPECT_EQ(refusal_of(R"({"prompt": "a", "completion": 5})"),
            "[f.jsonl:7 column completion] expected text or messages, got number 5; try quotes around it, \"5\"");
}

// Nothing would read such a question, and the prompt would be whatever the answers have in common at their beginning.
TEST(RowReader, AQuestionThatPairsDoNotHoldIsRefused) {
  for (const char* answers : {R"("chosen": "Sure, a", "rejected": "Sure, b")", R"("chosen": "a", "rejected": "b")",
                              R"("chosen": [{"role": "assistant", "content": "a"}],
                                 "rejected": [{"role": "assistant", "content": "b"}])"})
    EXPECT_EQ(refusal_of(fmt::format(R"({{"system": "s", "question": "q?", {}}})", answers)),
              "[f.jsonl:7 column question] expected the prompt of chosen and rejected in a column prompt, got one by "
              "this name; try data columns: {question: prompt}");
  EXPECT_EQ(
      refusal_of(R"({"question": "q?", "chosen": "Human: q?\nAssistant: a", "rejected": "Human: q?\nAssistant: b"})"),
      "");
}

}  // namespace
}  // namespace collimate::text
