#include "collimate/plan/show/transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/graph/trace.h"
#include "tests/support/base/error_of.h"

namespace collimate::plan {
namespace {

graph::Graph linked() {
  graph::FunctionSpec generate{.name = "generate", .kind = graph::Kind::kGenerate, .needs = {}, .makes = {"ids"}};
  graph::FunctionSpec train{.name = "train",
                            .kind = graph::Kind::kTrain,
                            .needs = {"ids"},
                            .makes = {},
                            .granularity = graph::Granularity::kIteration,
                            .writes_weights = true};
  graph::Graph graph;
  graph.models["policy"].functions = {generate};
  graph.models["trainer"].functions = {train};
  graph.nodes = {{.id = "generate", .model = "policy", .function = "generate"},
                 {.id = "train", .model = "trainer", .function = "train"}};
  graph.links = {{.source = "trainer", .destination = "policy"}};
  return graph;
}

// Two blocks, an embedding and a head.
shape::ModelShape small() {
  shape::Block block;
  block.attention = {.heads = 4, .kv_heads = 4, .head_dim = 2};
  block.mlp.intermediate = 16;
  shape::ModelShape shape;
  shape.family = "llama";
  shape.vocabulary = 16;
  shape.hidden = 8;
  shape.blocks = {block, block};
  return shape;
}

graph::Placement placed(const std::vector<int>& trains, const std::vector<int>& generates, int tp) {
  graph::Placement placement;
  placement.devices = 4;
  placement.groups = {{"a", {trains, {"trainer"}}}, {"b", {generates, {"policy"}}}};
  placement.layouts["trainer"]["train"].tp = tp;
  return placement;
}

std::string text_of(const graph::Placement& placement, int columns = 120) {
  const graph::Graph graph = linked();
  return transfers_text(link_transfers(graph, placement, calls_of_nodes(graph), {{"trainer", all_weights(small(), 4)}}),
                        columns);
}

// The model has 1576 values.
TEST(Transfers, TextSaysWhoSendsWhatToWhom) {
  int64_t floats = 0;
  for (const shape::ParamSpec& spec : shape::param_specs(small())) floats += spec.count();
  ASSERT_EQ(floats, 2 * (4 * 64 + 3 * 128 + 2 * 8) + 2 * 128 + 8);
  const std::string text = text_of(placed({0, 1}, {2}, 2));
  EXPECT_THAT(text, testing::StartsWith("weights trainer -> policy, after every training: 6.16 KiB in"));
  EXPECT_THAT(text, testing::HasSubstr("device 0 -> 2"));
  EXPECT_THAT(text, testing::HasSubstr("device 1 -> 2"));
  EXPECT_EQ(text_of(placed({0, 1}, {0, 1}, 1)),
            "weights trainer -> policy, after every training: 0.00 KiB in 0 pieces, 0.00 KiB of it between devices\n"
            "  in place on devices 0, 1\n");
  EXPECT_THAT(text_of(placed({0, 1}, {1, 2}, 1)), testing::HasSubstr("in place on device 1\n"));
  EXPECT_THAT(text_of(placed({0, 1}, {1}, 2)), testing::HasSubstr("on device 1"));
}

TEST(Transfers, TextFitsItsColumns) {
  EXPECT_EQ(text_of(placed({0, 1}, {0, 1}, 1), 80),
            "weights trainer -> policy, after every training: 0.00 KiB in 0 pieces, 0.00 KiB\n"
            "        of it between devices\n"
            "  in place on devices 0, 1\n");
}

TEST(Transfers, JsonHasTheBytesOfEveryRoute) {
  const graph::Graph graph = linked();
  LinkedWeights weights = all_weights(small(), 2);
  weights.is_carried = [](const shape::ParamSpec& spec) { return spec.part == shape::Part::kFinalNorm; };
  const auto json = transfers_json(
      link_transfers(graph, placed({0}, {2, 3}, 1), calls_of_nodes(graph), {{"trainer", std::move(weights)}}));
  EXPECT_EQ(json.at(0).at("bytes"), 2 * 8 * 2);
  EXPECT_EQ(json.at(0).at("routes").size(), 2U);
  EXPECT_EQ(json.at(0).at("routes").at(1),
            nlohmann::ordered_json::parse(R"({"source": 0, "destination": 3, "bytes": 16, "pieces": 1})"));
  EXPECT_EQ(base::message_of([&] { link_transfers(graph, placed({0}, {1}, 1), {}, {}); }),
            "[transfers of trainer] expected its shape, got none; try a config");
}

}  // namespace
}  // namespace collimate::plan
