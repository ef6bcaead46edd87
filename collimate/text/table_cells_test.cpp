#include "collimate/text/table_cells.h"

#include <gmock/gmock.h>

#include "collimate/text/dataset.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using testing::HasSubstr;

const RowLocation kPlace{"t.csv", 0, 2};

Example example(const std::string& text) {
  Row row = Row::parse(text);
  const auto shape = recognise_shape(row);
  EXPECT_TRUE(shape.has_value()) << text;
  return to_example(shape.value_or(DataShape::kText), std::move(row), kPlace);
}

std::string refusal(const std::string& text) {
  return message_of<base::InputError>([&] { example(text); });
}

TEST(TableCells, HoldListsAsJson) {
  const Example one = example(R"({"messages": "[{\"role\": \"user\", \"content\": \"p\"}]"})");
  EXPECT_EQ(std::get<Conversation>(one.prompt).turns, (Messages{{"user", "p"}}));
  EXPECT_THAT(
      refusal(R"({"messages": "[{'role': 'user'}]"})"),
      HasSubstr("[t.csv:2 column messages] expected a list, or its JSON as a text, got Python's form of it; try "
                "writing the column by json.dumps"));
  const Example pair =
      example(R"({"prompt": "[{\"role\": \"user\", \"content\": \"p\"}]", "chosen": "[a]", "rejected": "b"})");
  EXPECT_EQ(std::get<Conversation>(pair.prompt).turns, (Messages{{"user", "p"}}));
  EXPECT_EQ(pair.chosen->content, "[a]");
  EXPECT_THAT(refusal(R"({"messages": "[{]"})"), HasSubstr("[t.csv:2 column messages] expected well-formed JSON"));
}

TEST(TableCells, SayLabelsAsWords) {
  const auto label = [](const std::string& value) {
    return example(R"({"prompt": "p", "completion": "c", "label": ")" + value + "\"}").label;
  };
  EXPECT_EQ(label("True"), true);
  EXPECT_EQ(label("1"), true);
  EXPECT_EQ(label("FALSE"), false);
  EXPECT_EQ(label("0"), false);
  EXPECT_THAT(refusal(R"({"prompt": "p", "completion": "c", "label": "yes"})"),
              HasSubstr("column label] expected true or false (or 1 or 0) beside an answer, got \"yes\""));
}

}  // namespace
}  // namespace collimate::text
