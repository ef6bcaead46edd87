#include "collimate/graph/schedule_transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/graph/sample_graphs.h"

namespace collimate::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ScheduleFacts facts_of(bool in_flight) {
  Graph graph = samples::grpo();
  Placement placement;
  placement.devices = 3;
  placement.groups["rollout"] = {{0, 1}, {"policy"}};
  placement.groups["training"] = {{2}, {"trainer"}};
  return make_facts(graph, placement, {.iterations = 9, .rows = 4, .group_size = 2, .update_in_flight = in_flight});
}

// The policy on devices 0 and 1 gets the weights of the trainer on 2 after every iteration.
class TransfersTest : public testing::Test {
 protected:
  explicit TransfersTest(bool in_flight = false) : facts_(std::make_shared<const ScheduleFacts>(facts_of(in_flight))) {}

  int node(const char* id) const { return facts_->graph.node_index(id); }
  Transfers::Step step() const { return transfers_.step(transfers_.all().at(0), workers_); }
  void transfer_to_all(int64_t version) {
    transfers_.trained("trainer", version);
    transfers_.begin(0, workers_);
    ASSERT_TRUE(transfers_.arrived("policy", -1, version, workers_));
  }

  const std::shared_ptr<const ScheduleFacts> facts_;
  const int generate_ = node("policy.generate"), train_ = node("trainer.train");
  const Task generates_{0, generate_, 0, 0}, trains_{0, train_, 0, 0};
  Workers workers_{facts_->nodes_on.size()};
  Transfers transfers_{facts_};
};

class TransfersInFlightTest : public TransfersTest {
 protected:
  TransfersInFlightTest() : TransfersTest(true) {}
};

TEST_F(TransfersTest, OneTakesItsWorkersAndLeavesItsVersion) {
  transfers_.request_all();
  ASSERT_EQ(transfers_.all().size(), 1U);
  EXPECT_TRUE(step().begins);
  EXPECT_THAT(step().cut, IsEmpty());
  EXPECT_THAT(transfers_.begin(0, workers_).targets, ElementsAre(0, 1));
  for (int worker : {0, 1, 2}) EXPECT_TRUE(workers_[worker].transferring) << worker;
  EXPECT_FALSE(transfers_.fresh(facts_->node(generate_), {0}, 0));
  EXPECT_FALSE(transfers_.arrived("policy", 1, 0, workers_)) << "of one worker alone";
  EXPECT_TRUE(transfers_.arrived("policy", -1, 0, workers_));
  EXPECT_TRUE(transfers_.empty());
  EXPECT_TRUE(workers_.idle());
  EXPECT_TRUE(transfers_.fresh(facts_->node(generate_), {0, 1}, 0));
  EXPECT_FALSE(transfers_.fresh(facts_->node(generate_), {0, 1}, 1));
  EXPECT_TRUE(transfers_.fresh(facts_->node(train_), {2}, 1)) << "nothing leads there";
}

TEST_F(TransfersTest, ATaskOfTheDestinationEndsBeforeOthersAreKeptFromStarting) {
  transfers_.trained("trainer", 1);
  workers_.start({1}, generates_);
  workers_.start({2}, trains_);
  EXPECT_THAT(step().cut, ElementsAre(generates_));
  EXPECT_FALSE(step().begins);
  EXPECT_TRUE(transfers_.blocks(facts_->node(generate_), {0}, workers_));
  EXPECT_TRUE(transfers_.blocks(facts_->node(train_), {2}, workers_)) << "it would change what is sent";
  EXPECT_FALSE(transfers_.blocks(facts_->node(node("reward")), {2}, workers_));
  workers_.end({1});
  EXPECT_THAT(step().cut, ElementsAre(trains_));
  EXPECT_FALSE(step().begins);
  EXPECT_TRUE(transfers_.blocks(facts_->node(node("reward")), {2}, workers_));
  workers_.end({2});
  EXPECT_TRUE(step().begins);
  transfers_.begin(0, workers_);
  EXPECT_FALSE(transfers_.blocks(facts_->node(generate_), {0}, workers_)) << "the workers themselves are taken";
}

TEST_F(TransfersTest, ANewerVersionTakesThePlaceOfOneThatHasNotBegun) {
  transfers_.trained("trainer", 1);
  transfers_.trained("trainer", 2);
  ASSERT_EQ(transfers_.all().size(), 1U);
  transfers_.begin(0, workers_);
  transfers_.trained("trainer", 3);
  ASSERT_EQ(transfers_.all().size(), 2U) << "after the one that runs";
  EXPECT_EQ(transfers_.all()[0].version, 2);
  EXPECT_FALSE(step().begins) << "its workers are taken";
  EXPECT_THROW(transfers_.arrived("policy", -1, 3, workers_), std::logic_error);
}

TEST_F(TransfersTest, AWorkerThatIsBackGetsTheNewestWeightsAlone) {
  transfer_to_all(4);
  workers_.lose(1, "gone");
  EXPECT_THAT(transfers_.lost(1, workers_), IsEmpty());
  EXPECT_FALSE(transfers_.fresh(facts_->node(generate_), {1}, 0));
  EXPECT_TRUE(transfers_.fresh(facts_->node(generate_), {0}, 4));
  transfers_.request_for(1);
  transfers_.request_for(2);  // it holds no destination
  ASSERT_EQ(transfers_.all().size(), 1U);
  transfers_.prune(workers_);
  EXPECT_TRUE(transfers_.empty()) << "nobody is there";
  workers_.back(1);
  transfers_.request_for(1);
  EXPECT_THAT(transfers_.begin(0, workers_).targets, ElementsAre(1));
  EXPECT_EQ(transfers_.all()[0].version, 4);
  EXPECT_FALSE(workers_[0].transferring);
}

TEST_F(TransfersTest, ALostReceiverIsLeftOutAndWithNobodyLeftItEnds) {
  transfers_.request_all();
  transfers_.begin(0, workers_);
  EXPECT_THAT(transfers_.lost(0, workers_), IsEmpty());
  EXPECT_FALSE(workers_[0].transferring);
  EXPECT_TRUE(workers_[1].transferring);
  EXPECT_THAT(transfers_.all()[0].targets, ElementsAre(1));
  EXPECT_EQ(transfers_.lost(1, workers_).size(), 1U);
  EXPECT_TRUE(transfers_.empty());
  EXPECT_TRUE(workers_.idle());
}

TEST_F(TransfersTest, WithoutItsSourceItEndsAndIsWantedAgain) {
  transfers_.request_all();
  transfers_.begin(0, workers_);
  EXPECT_EQ(transfers_.lost(2, workers_).size(), 1U);
  EXPECT_TRUE(workers_.idle());
  ASSERT_EQ(transfers_.all().size(), 1U);
  EXPECT_FALSE(transfers_.all()[0].running);
  workers_.lose(2, "gone");
  EXPECT_FALSE(step().begins);
  workers_.back(2);
  EXPECT_TRUE(step().begins);
}

TEST_F(TransfersInFlightTest, AStreamOfTheDestinationStaysAndIsPaused) {
  transfers_.trained("trainer", 1);
  workers_.start({1}, generates_);
  EXPECT_THAT(step().cut, IsEmpty());
  EXPECT_TRUE(step().begins);
  EXPECT_TRUE(transfers_.begin(0, workers_).paused);
  EXPECT_EQ(workers_[1].task, generates_);
  transfers_.arrived("policy", -1, 1, workers_);
  workers_.end({1});
  transfers_.trained("trainer", 2);
  EXPECT_FALSE(transfers_.begin(0, workers_).paused) << "nothing runs";
}

TEST_F(TransfersTest, AfterASetupNoWorkerHasWeightsAndTheyGoOnAsSaved) {
  transfer_to_all(4);
  transfers_.trained("trainer", 5);
  transfers_.begin(0, workers_);
  const nlohmann::json saved = transfers_;
  EXPECT_EQ(saved.dump(),
            R"({"trained":{"trainer":5},"transfers":[{"link":0,"paused":false,"running":true,"targets":[0,1],)"
            R"("version":5,"worker":-1}],"versions":[[["policy",0],4],[["policy",1],4]]})");
  Transfers loaded(facts_);
  saved.get_to(loaded);
  EXPECT_EQ(nlohmann::json(loaded), saved);
  loaded.reset();
  EXPECT_TRUE(loaded.empty());
  EXPECT_FALSE(loaded.fresh(facts_->node(generate_), {0}, 0));
  loaded.request_all();
  EXPECT_EQ(loaded.all().at(0).version, 5);
}

}  // namespace
}  // namespace collimate::graph
