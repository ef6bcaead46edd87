#include "collimate/plan/cost/functions.h"

#include <gtest/gtest.h>

#include "collimate/plan/plan.h"
#include "collimate/plan/search/search.h"
#include "tests/support/plan/inputs/sample_request.h"

namespace collimate::plan {
namespace {

// The bases of models by name: whose weights each reads in place, "" of one that has its own.
std::map<std::string, std::string> bases_of(const Request& request) {
  const Functions functions(request);
  std::map<std::string, std::string> bases;
  for (size_t f = 0; f < functions.size(); ++f)
    if (functions.at(f).model >= 0 && functions.at(f).work != Work::kTrain)
      bases[functions.model_of(f)] =
          functions.at(f).base < 0 ? "" : functions.model_of(static_cast<size_t>(functions.at(f).base));
  return bases;
}

double weights_held(const Plan& plan, const std::string& model) {
  double bytes = 0;
  for (const HeldItem& item : plan.memory.at(0).resident)
    if (item.what == "weights" && item.owner.starts_with(model + ".")) bytes += item.bytes;
  return bytes;
}

// A reference is the policy without its adapters, so that it needs no weights of its own beside what trains them.
TEST(Functions, AReferenceReadsWhatAdaptersAreAddedTo) {
  Request request = request_for("llama2-7b", "1xA100-80", "grpo,256,512x512");
  EXPECT_EQ(bases_of(request).at("reference"), "");
  request.lora["policy_trainer"] = 16;
  EXPECT_EQ(bases_of(request).at("reference"), "policy_trainer");
  const Plan plan = search(request).plans.at(0);
  EXPECT_EQ(weights_held(plan, "reference"), 0);
  for (const Call& call : plan.calls) EXPECT_FALSE(call.swapped) << call.model;
  request.models["reference"] = shape::find_outline("llama2-7b");
  EXPECT_EQ(bases_of(request).at("reference"), "") << "a model of the same shape from other files";
  request.models["policy_trainer"] = request.models.at("reference");
  request.bases = {{"policy_trainer", "policy+reference"}, {"reference", "policy+reference"}};
  EXPECT_EQ(bases_of(request).at("reference"), "policy_trainer");
}

// Four devices infer and four train. The policy has a second function, which scores, beside its generation.
class TwoReaders : public testing::Test {
 protected:
  TwoReaders() {
    placement_.devices = 8;
    placement_.groups["inference"] = {{0, 1, 2, 3}, {"policy", "reference"}};
    placement_.groups["training"] = {{4, 5, 6, 7}, {"policy_trainer"}};
    placement_.layouts["policy_trainer"]["train"].tp = 4;
    placement_.layouts["policy"]["generate"].tp = 4;
  }
  void add_second(const std::string& model) {
    graph::Graph& graph = request_.graph;
    graph::FunctionSpec scores = graph.models.at("reference").functions.at(0);
    scores.name = "again";
    scores.makes = {model + "_log_probs:f32"};
    graph.models.at(model).functions.push_back(scores);
    graph::Node node = graph.node(graph.node_index("reference.log_probs"));
    node.id = model + ".again", node.model = model, node.function = "again", node.outputs = {node.id};
    graph.nodes.push_back(node);
  }
  Plan plan() const { return cost_placement(request_, placement_); }

  Request request_ = request_for("llama2-7b", "1x8xA100-80", "grpo,256,512x512");
  graph::Placement placement_;
};

// Where both cut weights alike, they read one copy.
TEST_F(TwoReaders, ThatCutAlikeGetNewWeightsOnce) {
  const double once = plan().transfer_seconds.at(0);
  EXPECT_GT(once, 0);
  add_second("policy");
  placement_.layouts["policy"]["again"].tp = 4;
  EXPECT_EQ(plan().transfer_seconds.at(0), once);
  placement_.layouts["policy"]["again"].tp = 2;
  EXPECT_GT(plan().transfer_seconds.at(0), 1.5 * once);
}

TEST_F(TwoReaders, ThatCutAlikeHoldOneCopy) {
  const double once = weights_held(plan(), "policy"), reference = weights_held(plan(), "reference");
  EXPECT_GT(once, 3e9);
  add_second("policy");
  add_second("reference");
  placement_.layouts["policy"]["again"].tp = 4;
  EXPECT_EQ(weights_held(plan(), "policy"), once);
  EXPECT_EQ(weights_held(plan(), "reference"), reference);
  placement_.layouts["policy"]["again"].tp = 2;
  EXPECT_NEAR(weights_held(plan(), "policy"), 3 * once, 0.1 * once) << "a quarter and a half";
}

// A reward model has the shape of the policy where none is given, and weights of its own all the same.
TEST(Functions, AModelWithoutAVocabularySharesNoBase) {
  Request request = request_for("llama2-7b", "1x8xA100-80", "ppo,256,512x512");
  request.lora["policy_trainer"] = 16;
  EXPECT_EQ(bases_of(request).at("reward"), "");
  EXPECT_EQ(bases_of(request).at("reference"), "policy_trainer");
}

}  // namespace
}  // namespace collimate::plan
