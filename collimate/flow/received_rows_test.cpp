#include "collimate/flow/received_rows.h"

#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/tensor/allocator.h"
#include "tests/support/base/error_of.h"
#include "tests/support/flow/toy_modules.h"

namespace collimate::flow {
namespace {

constexpr int64_t kPictureFloats = 65536;
constexpr int64_t kPictures = 4;
constexpr int64_t kPictureBytes = kPictures * kPictureFloats * static_cast<int64_t>(sizeof(float));
const Key<float> kPicture{.name = "picture", .inner = {kPictureFloats}};

graph::FunctionSpec whole(const char* name, std::vector<graph::Column> needs, std::vector<graph::Column> makes) {
  graph::FunctionSpec spec = toy::spec_of(name, graph::Kind::kScore, std::move(needs), std::move(makes));
  spec.granularity = graph::Granularity::kIteration;
  return spec;
}
graph::FunctionSpec draw_spec() { return whole("draw", {"uid"}, {"picture"}); }
graph::FunctionSpec look_spec() { return whole("look", {"picture"}, {"score"}); }

// The accounts are of what device 0, device 1 and the driver hold.
struct Accounts {
  int64_t maker = tensor::memory_used(0);
  int64_t reader = tensor::memory_used(1);
  int64_t driver = tensor::memory_used(kDriverAccount);
};

class Painter : public Module {
 public:
  std::vector<graph::FunctionSpec> functions() const override { return {draw_spec()}; }
  void setup(Context&) override {}
  Batch call(const std::string&, const Batch& input, const CallInfo&) override {
    Batch made(input.rows());
    made.set(kPicture, std::vector<float>(static_cast<size_t>(input.rows() * kPictureFloats), 1.0F));
    return made;
  }
};

// Notes the accounts while it looks. "holds_bytes" of its device's memory from setup on.
class Viewer : public Module {
 public:
  Viewer(Accounts& seen, const nlohmann::json& parameters) : seen_(seen), parameters_(parameters) {}
  std::vector<graph::FunctionSpec> functions() const override { return {look_spec()}; }
  void setup(Context&) override { held_ = tensor::Buffer(parameters_.value("holds_bytes", int64_t{0})); }
  Batch call(const std::string&, const Batch& input, const CallInfo&) override {
    seen_ = Accounts();
    Batch made(input.rows());
    made.set(batch::kScore, std::vector<float>(static_cast<size_t>(input.rows()), input.row(kPicture, 0)[7]));
    return made;
  }

 private:
  Accounts& seen_;
  nlohmann::json parameters_;
  tensor::Buffer held_;
};

// One iteration of pictures that device 0 makes and device 1 reads.
class ReceivedRowsTest : public testing::Test {
 protected:
  void SetUp() override { tensor::install_aten_allocator(); }

  void run_pictures(RunOptions options) {
    options.schedule.rows = kPictures;
    const graph::ModelHandle painter("painter", {draw_spec()}), viewer("viewer", {look_spec()});
    const graph::Graph graph = graph::trace([&](graph::Value prompts) { viewer("look", painter("draw", prompts)); },
                                            {{"prompts", {"uid", "prompt_uid"}}}, "pictures");
    graph::Placement placement;
    placement.devices = 2;
    placement.groups = {{"first", {{0}, {"painter"}}}, {"second", {{1}, {"viewer"}}}};
    Registry registry;
    registry.add("painter", [](const nlohmann::json&) { return std::make_unique<Painter>(); });
    registry.add("viewer", [this](const nlohmann::json& parameters) {
      return std::make_unique<Viewer>(while_read_, parameters);
    });
    run(graph, placement, registry, options);
  }

  // One iteration of pictures that nobody reads.
  static void run_unread(RunOptions options) {
    options.schedule.rows = kPictures;
    const graph::ModelHandle painter("painter", {draw_spec()});
    const graph::Graph graph = graph::trace([&](graph::Value prompts) { painter("draw", prompts); },
                                            {{"prompts", {"uid", "prompt_uid"}}}, "unread");
    Registry registry;
    registry.add("painter", [](const nlohmann::json&) { return std::make_unique<Painter>(); });
    run(graph, graph::flattening(graph, 1), registry, options);
  }

  Accounts while_read_;
};

TEST_F(ReceivedRowsTest, CountForWhoHoldsThem) {
  Accounts after;
  nlohmann::json memory;
  RunOptions options = toy::run_options(1);
  options.on_iteration = [&](const IterationResult& result) {
    after = Accounts();
    EXPECT_EQ(result.batches.at("viewer.look").get(batch::kScore, 0), 1.0F);
  };
  options.on_end = [&](const RunEnd& end) { memory = end.memory; };
  run_pictures(options);
  EXPECT_LT(while_read_.maker, kPictureBytes);
  EXPECT_GE(while_read_.reader, kPictureBytes);
  EXPECT_LT(while_read_.driver, kPictureBytes);
  EXPECT_LT(after.maker, kPictureBytes);
  EXPECT_LT(after.reader, kPictureBytes);
  EXPECT_GE(after.driver, kPictureBytes);
  for (const int device : {0, 1}) EXPECT_GE(memory.at(static_cast<size_t>(device)).at("peak_bytes"), kPictureBytes);
  // No worker gives back what none reads: the driver itself has taken it over.
  options.on_iteration = [&](const IterationResult&) { after = Accounts(); };
  run_unread(options);
  EXPECT_LT(after.maker, kPictureBytes);
  EXPECT_GE(after.driver, kPictureBytes);
}

// A message between processes has no other holder than the receiver.
TEST_F(ReceivedRowsTest, StayWithTheirReceiverWhereNobodyElseHasThem) {
  std::vector<Batch> rows = {Batch(kPictures)};
  rows[0].set(kPicture, std::vector<float>(static_cast<size_t>(kPictures * kPictureFloats), 1.0F));
  const Accounts before;
  { const ReceivedRows received(rows, 1, false); }
  EXPECT_GE(Accounts().reader, before.reader + kPictureBytes);
  EXPECT_LT(Accounts().driver, before.driver + kPictureBytes);
}

TEST_F(ReceivedRowsTest, CountForTheBudgetOfWhoReceivesThem) {
  RunOptions options = toy::run_options(1);
  options.memory_budget_bytes = kPictureBytes * 3 / 2;
  run_pictures(options);
  options.modules["viewer"] = {"viewer", {{"holds_bytes", kPictureBytes}}};
  const std::string error = base::message_of<base::RunError>([&] { run_pictures(options); });
  EXPECT_TRUE(error.starts_with("[memory of worker 1] expected at most 1.5 MiB (run.memory_budget), got ")) << error;
}

}  // namespace
}  // namespace collimate::flow
