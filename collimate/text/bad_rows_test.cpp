#include <gmock/gmock.h>

#include "collimate/host/atomic_file.h"
#include "collimate/text/dataset.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using testing::HasSubstr;

class BadRowsOfAFile : public testing::Test {
 protected:
  // The message for which a file of this content is refused; "" where it is taken.
  std::string error(const std::string& content, const BadRows& bad) const {
    host::write_file_atomically(path_, content);
    return message_of<base::InputError>([&] { Dataset::read({{.path = path_}}, bad); });
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path("a.jsonl");
  const std::string good_ = "{\"prompt\": \"a\"}\n", bad_ = "{\"prompt\": 1}\n";
};

TEST_F(BadRowsOfAFile, AnErrorSaysWhatLeavesThemOut) {
  const BadRows drop{.remedy = "the key: drop"};
  const std::string reason = "[" + path_ + ":2 column prompt] expected a prompt (text, messages or ids), got number";
  EXPECT_EQ(error(good_ + bad_ + "{\n" + good_, drop), reason + "; try the key: drop, which leaves out 2 of 4 rows");
  EXPECT_THAT(error(good_ + "{\"prompt\": 123456789012345678901234567890}\n", drop),
              HasSubstr("\", or the key: drop, which leaves out 1 of 2 rows"));  // after another remedy
}

TEST_F(BadRowsOfAFile, AnErrorNamesNoRemedyThatDoesNotApply) {
  EXPECT_THAT(error(good_ + bad_, {}), testing::EndsWith("got number")) << "there is no key";
  EXPECT_THAT(error(bad_ + bad_, {.remedy = "the key: drop"}), testing::EndsWith("got number")) << "no row is left";
  EXPECT_EQ(error(good_ + bad_, {.drop = true, .remedy = "the key: drop"}), "");
}

}  // namespace
}  // namespace collimate::text
