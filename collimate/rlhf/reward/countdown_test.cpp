#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "tests/support/rlhf/reward/made_rule.h"

namespace collimate::rlhf {
namespace {

TEST(Rules, CountdownUsesEachNumberOnce) {
  const nlohmann::json truth = {{"target", 98}, {"numbers", {44, 19, 35}}};
  EXPECT_EQ(value("countdown", {}, "<answer> 44 + 19 + 35 </answer>", truth), 1.0);
  EXPECT_EQ(value("countdown", {}, "<answer>(44+19+35)</answer>", truth.dump()), 1.0);
  EXPECT_EQ(value("countdown", {}, "<answer>98</answer>", truth), 0.1);
  EXPECT_EQ(value("countdown", {}, "<answer>44+19+35+44-44</answer>", truth), 0.1);
  EXPECT_EQ(value("countdown", {}, "<answer>system('x')</answer>", truth), 0.1);
  EXPECT_EQ(value("countdown", {}, "44+19+35", truth), 0.0);
}

// The rule reads as re.finditer(r'<answer>(.*?)</answer>') does.
TEST(Rules, CountdownTakesTheLastCompleteAnswer) {
  const nlohmann::json truth = {{"target", 3}, {"numbers", {1, 2}}};
  const std::string right = "<answer>1+2</answer>", wrong = "<answer>2-1</answer>";
  EXPECT_EQ(value("countdown", {}, wrong + "\nno: " + right, truth), 1.0);
  EXPECT_EQ(value("countdown", {}, right + wrong, truth), 0.1);
  EXPECT_EQ(value("countdown", {}, right + " or <answer>2-1", truth), 1.0);
  EXPECT_EQ(value("countdown", {}, "</answer>" + right + "</answer>", truth), 1.0);
  EXPECT_EQ(value("countdown", {}, "<answer>" + right, truth), 0.1);
  EXPECT_EQ(value("countdown", {}, "<answer>\n1+2\n</answer>\n", truth), 1.0);
  EXPECT_EQ(value("countdown", {}, "<answer>1+2", truth), 0.0);
}

TEST(Rules, CountdownTakesRunsOfDigitsForNumbers) {
  EXPECT_EQ(value("countdown", {}, "<answer>2**3</answer>", {{"target", 8}, {"numbers", {2, 3}}}), 1.0);
  EXPECT_EQ(value("countdown", {}, "<answer>1.5*2</answer>", {{"target", 3}, {"numbers", {1, 2, 5}}}), 1.0);
  EXPECT_EQ(value("countdown", {}, "<answer>4.0-1</answer>", {{"target", 3}, {"numbers", {1, 4}}}), 0.1);
}

// Values are those of Python's eval.
TEST(Rules, ArithmeticIsPythons) {
  const std::vector<std::pair<std::string, double>> cases = {
      {"2*(3+4)/-7", -2}, {"+3", 3},           {"2**3", 8},       {"-2**2", -4},  {"2**-1", 0.5}, {"2**3**2", 512},
      {"7//2", 3},        {"-7//2", -4},       {"7//-2.", -4},    {"1.5//.5", 3}, {"1//.1", 9},   {"8//2*2", 8},
      {"8/2//3", 1},      {"9 ** .5 - 1.", 2}, {"2 -\t- + 3", 5}, {"007.5", 7.5}, {"00", 0},      {"2*-3**2", -18}};
  for (const auto& [text, wanted] : cases) EXPECT_DOUBLE_EQ(evaluate_arithmetic(text), wanted) << text;
}

TEST(Rules, ArithmeticIsStrict) {
  for (const char* bad :
       {"",      "1+",      "1/0",  "1//0", "0**-1", "(1", "1)", "()",    "1.2.3",     "1 2",     "2 * *3",    "2***3",
        "7///2", "7 / / 2", "2(3)", "1e3",  "07",    ".",  "*2", "1+\n2", "(-8)**0.5", "9**9**9", "1/9.**9**9"})
    EXPECT_THROW(evaluate_arithmetic(bad), base::InputError) << bad;
  EXPECT_THROW(evaluate_arithmetic(std::string(100000, '(')), base::InputError);
  EXPECT_THROW(evaluate_arithmetic(std::string(100000, '-')), base::InputError);
}

}  // namespace
}  // namespace collimate::rlhf
