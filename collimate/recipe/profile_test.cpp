#include "collimate/recipe/profile.h"

#include <gtest/gtest.h>

namespace collimate::recipe {
namespace {

using Operations = std::vector<tensor::OperationTime>;

TEST(Profile, OfTheSlowestIterationByFunctionAndOperation) {
  const std::string draw = "policy.generate", learn = "trainer.train";
  const Operations drawn = {{"add", 4, 0.25, 0.25}, {"linear", 8, 1.0, 0.75}, {"copy", 8, 0.25, 0.25}};
  Profile profile;
  EXPECT_TRUE(profile.empty());
  profile.add({draw, 0, 0, 10.0, 11.0, 1.0, {}});
  profile.end_iteration(0, 1.0);
  profile.add({draw, 0, 1, 20.0, 22.0, 2.0, drawn});
  profile.add({draw, 0, 1, 22.0, 23.0, 1.0, drawn});
  profile.add({learn, 1, 1, 22.5, 23.5, 1.0, {}});
  profile.end_iteration(1, 4.0);
  profile.add({learn, 1, 2, 30.0, 33.0, 3.0, {}});
  profile.end_iteration(2, 3.0);
  EXPECT_EQ(profile.table(),
            "iteration 2, the slowest of 3: 4.0000 s\n"
            "function, and its operations                    calls    total s     self s  self %\n"
            "policy.generate (worker 0)                          2     3.0000     0.5000    12.5\n"
            "  linear                                           16     2.0000     1.5000    37.5\n"
            "  add                                               8     0.5000     0.5000    12.5\n"
            "  copy                                             16     0.5000     0.5000    12.5\n"
            "trainer.train (worker 1)                            1     1.0000     1.0000    25.0\n"
            "while no function ran                                     0.5000     0.5000    12.5\n");
}

}  // namespace
}  // namespace collimate::recipe
