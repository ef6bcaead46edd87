// Results that are served from a journal, in runs of toy modules.
#include <gtest/gtest.h>

#include <set>

#include "collimate/flow/executor.h"
#include "collimate/flow/host_module.h"
#include "tests/support/flow/toy_runs.h"

namespace collimate::flow {
namespace {

using namespace toy;  // NOLINT: test only

// Rows carry what led to them, which may differ when a journal serves one of their columns: it serves that alone.
TEST(JournaledRows, AreWhatTheirFunctionMakesAlone) {
  float noise = 1;
  std::set<float> seen;
  const auto add = [](const Batch& input, const Key<float>& key, float value) {
    Batch made = input;
    made.set(key, std::vector<float>(static_cast<size_t>(input.rows()), value));
    return made;
  };
  Registry registry = toy::registry();
  const auto host = [&](const std::string& name, const graph::FunctionSpec& spec, const auto& function) {
    registry.add(name, [=](const nlohmann::json&) {
      auto module = std::make_unique<HostModule>();
      module->add(spec, function);
      return module;
    });
    return graph::ModelHandle(name, {spec});
  };
  graph::FunctionSpec judged = toy::score_spec(false);
  const auto measure =
      host("measure", toy::spec_of("measure", graph::Kind::kHost, {"uid"}, {"score"}),
           [&](const Batch& input, const CallInfo&, std::vector<Metric>&) { return add(input, batch::kScore, noise); });
  const auto judge = host("judge", judged, [&](const Batch& input, const CallInfo&, std::vector<Metric>&) {
    return add(input, batch::kReward, noise);
  });
  const auto look = host("look", toy::spec_of("look", graph::Kind::kHost, {"score", "reward"}, {"seen"}),
                         [&](const Batch& input, const CallInfo&, std::vector<Metric>&) {
                           for (const float score : input.all(batch::kScore)) seen.insert(score);
                           for (const float reward : input.all(batch::kReward)) seen.insert(10 + reward);
                           return add(input, Key<float>{"seen"}, 0);
                         });
  graph::ModelHandle policy("policy", {toy::generate_spec()}), trainer("trainer", {toy::train_spec()});
  const graph::Graph graph = graph::trace(
      [&](graph::Value prompts) {
        trainer.train(look("look", judge("score", measure("measure", policy("generate", prompts)))));
        graph::link(trainer, policy);
      },
      {{"prompts", {"uid", "prompt_uid"}}}, "judged");
  const graph::Placement placement = graph::flattening(graph, 1);
  Outcome outcome, replayed;
  RunOptions options = options_for(outcome);
  options.directory = temporary("made-alone");
  run(graph, placement, registry, options);
  EXPECT_EQ(seen, (std::set<float>{1, 11}));
  RunOptions again = options_for(replayed);
  again.replay = options.directory + "/journal.bin";
  noise = 2;
  seen.clear();
  run(graph, placement, registry, again);
  EXPECT_EQ(seen, (std::set<float>{2, 11}));
}

}  // namespace
}  // namespace collimate::flow
