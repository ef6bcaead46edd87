#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/rule_for_test.h"

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

TEST(Rules, ArithmeticIsStrict) {
  std::vector<double> numbers;
  EXPECT_DOUBLE_EQ(evaluate_arithmetic("2*(3+4)/-7", numbers), -2.0);
  EXPECT_EQ(numbers, (std::vector<double>{2, 3, 4, 7}));
  for (const char* bad : {"", "1+", "1/0", "2**3", "(1", "1)"})
    EXPECT_THROW(evaluate_arithmetic(bad, numbers), base::InputError) << bad;
  EXPECT_THROW(evaluate_arithmetic(std::string(100000, '('), numbers), base::InputError);
}

}  // namespace
}  // namespace collimate::rlhf
