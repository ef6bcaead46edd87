#include "collimate/graph/schedule_swaps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collimate::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Move = Swaps::Move;

// Three models take turns on each worker.
class SwapsTest : public testing::Test {
 protected:
  std::vector<Move> moves_for(const std::vector<std::string>& used, int worker = 0) {
    std::vector<Move> moves;
    ready_ = swaps_.prepare(worker, {"a", "b", "c"}, used, moves);
    return moves;
  }
  void complete(const std::vector<Move>& moves) {
    for (const Move& move : moves) swaps_.moved(move.model, move.worker, move.load);
  }

  Swaps swaps_;
  bool ready_ = false;
};

TEST_F(SwapsTest, LoadsWhatIsUsedAndIsReadyWhenAllOfItIsThere) {
  EXPECT_THAT(moves_for({"a", "c"}), ElementsAre(Move{"a", 0, true}, Move{"c", 0, true}));
  EXPECT_FALSE(ready_);
  EXPECT_THAT(moves_for({"a", "c"}), IsEmpty()) << "they have begun";
  swaps_.moved("a", 0, true);
  EXPECT_THAT(moves_for({"a", "c"}), IsEmpty());
  EXPECT_FALSE(ready_);
  swaps_.moved("c", 0, true);
  EXPECT_THAT(moves_for({"a", "c"}), IsEmpty());
  EXPECT_TRUE(ready_);
  moves_for({"none of them"});
  EXPECT_FALSE(ready_) << "others than those used are there";
}

TEST_F(SwapsTest, OffLoadsFirst) {
  complete(moves_for({"a", "b"}));
  EXPECT_THAT(moves_for({"c"}), ElementsAre(Move{"a", 0, false}, Move{"b", 0, false}));
  swaps_.moved("b", 0, false);
  EXPECT_THAT(moves_for({"c"}), IsEmpty()) << "one of them is still there";
  swaps_.moved("a", 0, false);
  EXPECT_THAT(moves_for({"c"}), ElementsAre(Move{"c", 0, true}));
}

TEST_F(SwapsTest, AModelThatIsStillLoadedIsInTheWayUntilItIsAwayAgain) {
  const std::vector<Move> loads = moves_for({"a"});
  EXPECT_THAT(moves_for({"b"}), IsEmpty());
  complete(loads);
  EXPECT_THAT(moves_for({"b"}), ElementsAre(Move{"a", 0, false}));
  EXPECT_FALSE(ready_);
}

TEST_F(SwapsTest, WorkersAreApartAndALostOneHoldsNothing) {
  complete(moves_for({"a"}, 0));
  complete(moves_for({"a"}, 1));
  swaps_.lost(1);
  EXPECT_THAT(moves_for({"a"}, 1), ElementsAre(Move{"a", 1, true}));
  EXPECT_THAT(moves_for({"a"}, 0), IsEmpty());
  EXPECT_TRUE(ready_);
}

TEST_F(SwapsTest, GoOnAsSaved) {
  complete(moves_for({"a"}));
  moves_for({"b"});
  const nlohmann::json saved = swaps_;
  EXPECT_EQ(saved.dump(), R"([[["a",0],3],[["b",0],0],[["c",0],0]])");
  swaps_ = saved.get<Swaps>();
  swaps_.moved("a", 0, false);
  EXPECT_THAT(moves_for({"b"}), ElementsAre(Move{"b", 0, true}));
}

}  // namespace
}  // namespace collimate::graph
