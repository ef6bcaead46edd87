#include "collimate/plan/show/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "collimate/base/error.h"
#include "collimate/graph/forms.h"
#include "collimate/plan/digits.h"
#include "collimate/plan/show/plan_html.h"
#include "collimate/plan/show/sweep.h"
#include "tests/support/base/error_of.h"
#include "tests/support/plan/inputs/sample_request.h"

namespace collimate::plan {
namespace {

using testing::HasSubstr;

Request request_of(const std::string& model, const std::string& cluster, int staleness = 0) {
  Request request = request_for(model, cluster, "ppo,512,512x512");
  request.load.staleness = staleness;
  return request;
}

// Work and idle time of a lane are the whole period, without overlap, and every bubble has a cause.
TEST(Timeline, LanesAreFull) {
  for (const int staleness : {0, 1}) {
    const Request request = request_of("llama2-7b", "8xA100-80", staleness);
    for (const Plan& plan : search(request).plans) {
      const Timeline timeline = timeline_of(request, plan, simulate_plan(request, plan));
      ASSERT_FALSE(timeline.lanes.empty());
      for (const Lane& lane : timeline.lanes) {
        double worked = 0, end = 0;
        for (const Block& block : lane.blocks) {
          EXPECT_GE(block.begin_seconds, end - 1e-6) << plan.parts;
          end = block.end_seconds;
          worked += block.end_seconds - block.begin_seconds;
        }
        EXPECT_NEAR(worked + lane.idle_seconds, timeline.seconds, 1e-6 * timeline.seconds) << plan.parts;
        for (const Bubble& bubble : lane.bubbles) EXPECT_FALSE(bubble.cause.empty());
      }
    }
  }
}

// Devices in step are simulated as one: nothing else changes.
TEST(Timeline, ManyDevicesAreSimulatedInUnits) {
  Request request = request_of("llama2-7b", "9x8xA100-80", 1);
  request.load.rows = 576;  // which 64 of the devices cannot share out evenly
  request.keep = 2;
  for (const Plan& plan : search(request).plans) {
    const PlanSimulation made = simulate_plan(request, plan);
    EXPECT_GT(made.devices_per_worker, 1) << plan.parts;
    graph::ScheduleOptions options{.iterations = 7, .rows = 0, .staleness = 1};
    options.rows = 1;
    for (const Call& call : plan.calls)
      options.rows = std::lcm(options.rows,
                              static_cast<int64_t>(graph::replicas(request.graph, plan.placement, call.node).size()));
    const Simulation whole =
        simulate(request.graph, plan.placement, options, predictions_of(request, plan, plan.placement, options.rows));
    EXPECT_NEAR(whole.seconds, made.simulation.seconds, 1e-6 * whole.seconds) << plan.parts;
  }
}

// With flattening nothing waits; with a slow reference on a device of its own the others wait for it.
TEST(Timeline, BubblesNameWhatTheyWaitFor) {
  Request request = request_of("qwen2.5-1.5b", "2xA100-80");
  graph::Placement placement;
  placement.devices = 2;
  placement.groups["main"] = {{0}, {"policy", "policy_trainer", "value", "reward"}};
  placement.groups["side"] = {{1}, {"reference"}};
  const Plan plan = cost_placement(request, placement);
  const Timeline timeline = timeline_of(request, plan, simulate_plan(request, plan));
  ASSERT_EQ(timeline.lanes.size(), 2U);
  const std::vector<Bubble>& side = timeline.lanes[1].bubbles;
  ASSERT_FALSE(side.empty());
  EXPECT_EQ(side[0].cause, "policy.generate");
  const Plan flat = cost_placement(request, graph::flattening(request.graph, 2, "cuda"));
  EXPECT_NEAR(timeline_of(request, flat, simulate_plan(request, flat)).lanes[0].idle_seconds, 0, 1e-6);
}

TEST(Timeline, ChromeTraceHasEveryDevice) {
  const Request request = request_of("qwen2.5-1.5b", "4xA100-80");
  const Plan plan = cost_placement(request, graph::interleaving(request.graph, 4, "cuda"));
  const nlohmann::ordered_json trace = chrome_trace(request, plan, simulate_plan(request, plan));
  std::set<int> threads;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == "X") {
      threads.insert(event.at("tid").get<int>());
      EXPECT_GE(event.at("dur").get<double>(), 0);
    }
  for (int device = 0; device < 4; ++device) EXPECT_TRUE(threads.contains(device)) << device;
}

// Items add up to the peak, which no device may exceed; a placement that does is named with its item.
TEST(Plan, MemoryIsItemised) {
  const Request request = request_of("llama2-7b", "8xA100-80");
  const Plan plan = search(request).plans.at(0);
  const auto sum = [](double total, const HeldItem& item) { return total + item.bytes; };
  for (const DeviceMemory& memory : plan.memory) {
    const double items = std::accumulate(memory.resident.begin(), memory.resident.end(), 0.0, sum) +
                         std::accumulate(memory.peak.begin(), memory.peak.end(), 0.0, sum);
    EXPECT_NEAR(items, memory.peak_bytes, 1e-6 * memory.peak_bytes);
  }
  EXPECT_EQ(misfit_of(request, plan), "");
  Request small = request;
  small.cluster = parse_cluster("1xA100-40");
  const Plan flat = cost_placement(small, graph::flattening(small.graph, 1, "cuda"));
  EXPECT_THAT(misfit_of(small, flat), HasSubstr("of which optimizer of"));
}

// A device has as many sums as functions, one for each phase, the largest of which is its peak.
TEST(PlanText, MemoryOfEveryPhase) {
  const Request request = request_of("llama2-7b", "8xA100-80");
  const Plan plan = search(request).plans.at(0);
  const std::string text = phase_memory_text(request, plan);
  for (const DeviceMemory& memory : plan.memory) {
    EXPECT_THAT(text, HasSubstr("devices " + devices_text(memory.devices)));
    EXPECT_THAT(text, HasSubstr(fmt::format("{} {:8} :", three_digits(memory.resident_bytes / 1e9, 1), "")));
    EXPECT_THAT(text, HasSubstr(fmt::format(" {} :", three_digits(memory.peak_bytes / 1e9, 1))));
  }
  for (const Call& call : plan.calls)
    if (!call.devices.empty()) {
      EXPECT_THAT(text, HasSubstr("\n    " + call.model + "." + call.function + " "));
    }
  for (const char* item : {"optimizer of policy_trainer.train", "keys and values", "activations"})
    EXPECT_THAT(text, HasSubstr(item));
}

// The example of the repository is a placement of PPO that the recipes' modules can run.
TEST(Plan, TheExampleIsAPlacementOfPpo) {
  std::ifstream file(COLLIMATE_SOURCE_DIR "/configs/placements/stories-ppo-2-cpus.yaml");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  ASSERT_TRUE(text.starts_with("request:\n"));
  Request request = request_of("qwen2.5-0.5b", "2xcpu");
  const Plan plan = cost_placement(request, graph::parse_placement(text));
  EXPECT_EQ(plan.form, "nested");
  for (const Call& call : plan.calls) EXPECT_EQ(call.how.layout.tp * call.how.layout.pp, 1);
}

// A placement that does not say how many rows decode at once gives keys and values what they want or what is left: 64
// rows of 1024 tokens on each device, of 12,288 bytes each.
TEST(Plan, APoolOfNoStatedSizeTakesWhatIsLeft) {
  const auto pool_of = [](const Request& request) {
    const Plan plan = cost_placement(request, graph::flattening(request.graph, request.cluster.devices(), "cuda"));
    EXPECT_EQ(misfit_of(request, plan), "");
    double most = 0;
    for (const Call& call : plan.calls)
      for (const HeldItem& item : call.used)
        if (item.what == "keys and values") most = std::max(most, item.bytes);
    EXPECT_GE(plan.peak_bytes, most);
    return std::pair(most, plan.peak_bytes);
  };
  Request request = request_of("qwen2.5-0.5b", "8xA100-80");
  EXPECT_NEAR(pool_of(request).first, 64 * 1024 * 12288 / 0.9, 1);
  request.load.rows = 1 << 20;
  EXPECT_NEAR(pool_of(request).second, usable_bytes(DeviceKinds().find("A100-80"), request.constants), 1e3);
}

TEST(Plan, DevicesWithoutAModelAreNamed) {
  const Request request = request_of("qwen2.5-1.5b", "4xA100-80");
  const Plan plan = cost_placement(request, graph::flattening(request.graph, 2, "cuda"));
  EXPECT_EQ(unused_devices(request, plan), (std::vector<int>{2, 3}));
  const Timeline timeline = timeline_of(request, plan, simulate_plan(request, plan));
  EXPECT_THAT(plan_text(request, plan, timeline), HasSubstr("not used by this plan"));
  EXPECT_EQ(plan_json(request, plan, timeline).at("unused_devices").size(), 2U);
}

TEST(Plan, PlacementsOutsideTheClusterAreRefused) {
  const Request request = request_of("llama2-7b", "2xA100-80");
  EXPECT_THROW(cost_placement(request, graph::flattening(request.graph, 4, "cuda")), base::InputError);
}

// DeepSpeed-Chat shards all that is trained and gathers the actor whole where it generates: ChatLearn's chart of 2023
// has its 7B on 8 and 13B on 16 devices run and its 30B on 32 out of memory.
TEST(Plan, WhatDeepSpeedChatCouldNotRunDoesNotFit) {
  const auto misfit = [](const std::string& model, const std::string& cluster) {
    Request request = request_of(model, cluster);
    const int devices = request.cluster.devices();
    graph::Placement placement = graph::flattening(request.graph, devices, "cuda");
    for (const auto& [name, functions] : request.graph.models)
      for (const graph::FunctionSpec& spec : functions.functions) {
        if (spec.kind == graph::Kind::kHost || spec.kind == graph::Kind::kGenerate) continue;
        graph::Layout& layout = placement.layouts[name][spec.name];
        layout.dp = devices;
        layout.zero = 3;
        layout.micro_batch = 1;
      }
    return misfit_of(request, cost_placement(request, placement));
  };
  EXPECT_EQ(misfit("opt-6.7b", "8xA800-80"), "");
  EXPECT_EQ(misfit("opt-13b", "2x8xA800-80"), "");
  EXPECT_THAT(misfit("opt-30b", "4x8xA800-80"), HasSubstr("of which weights of policy.generate"));
  EXPECT_THAT(misfit("opt-66b", "4x8xA800-80"), HasSubstr("of which weights of policy.generate"));
}

TEST(PlanText, ShowsPictureMemoryCostAndRunnerUps) {
  const Request request = request_of("llama2-7b", "8xA100-80");
  const SearchResult result = search(request);
  const std::string text = search_text(request, result, 100);
  for (const char* part : {"an iteration (simulated)", "GPU-hours", "one iteration", "memory:", "runner-ups",
                           "policy.generate", "placements"})
    EXPECT_THAT(text, HasSubstr(part));
  const std::string page = search_html(request, result, 100);
  for (const char* part : {"<svg", "</svg>policy.generate</li>", "</svg>optimizer</li>", "GB on each device</text>",
                           "</svg>all that can be used: 75.2 GB</li>", ">seconds</text>", ">70</text>",
                           "<dt>staleness</dt>", "prefers-color-scheme: dark", "aria-label=\"One iteration of "})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_THAT(page, testing::Not(HasSubstr("http")));
  const nlohmann::ordered_json json = search_json(request, result, 100);
  EXPECT_EQ(json.at("plans").size(), result.plans.size());
  EXPECT_NEAR(json.at("run").at("gpu_hours").get<double>(), result.plans[0].seconds * 100 * 8 / 3600, 1e-6);
}

TEST(PlanText, CallsForWhichThereIsNoLetterShareASign) {
  const Request request = request_of("llama2-7b", "1xA100-80");
  Plan plan;
  plan.seconds = 54;
  plan.memory.push_back({{0}, 1e9, {}, {}});
  Timeline timeline{plan.seconds, {{{0}, "0", {}, {}}}};
  for (int call = 0; call < 54; ++call) {
    plan.calls.push_back({call, "m", "f" + std::to_string(call), {0}, {}, {}});
    timeline.lanes[0].blocks.push_back({call, "", 1.0 * call, 1.0 + call});
  }
  const std::string text = plan_text(request, plan, timeline);
  for (const char* part : {"A m.f0", "Z m.f25", "a m.f26", "z m.f51", "* m.f52", "* m.f53"})
    EXPECT_THAT(text, HasSubstr(part));
}

// The smallest one: a node less does not do.
TEST(PlanText, WhatCannotFitGetsTheNumberOfDevicesThatDoes) {
  const std::pair<const char*, const char*> cases[] = {{"llama2-70b", "8xA100-80"}, {"llama3.1-405b", "3x8xA100-80"}};
  for (const auto& [model, given] : cases) {
    const Request request = request_of(model, given);
    const std::string text = base::message_of([&] { require_plan(request, search(request)); });
    const std::string larger = text.substr(text.rfind("try ") + 4);
    EXPECT_THAT(text, HasSubstr("of which"));
    EXPECT_FALSE(search(request_of(model, larger)).plans.empty()) << larger;
    const Cluster less = with_devices(parse_cluster(larger), parse_cluster(larger).devices() - 8).value();
    EXPECT_TRUE(search(request_of(model, cluster_text(less))).plans.empty()) << larger;
  }
}

// With dp alone more devices hold no more of a model: other layouts do, on these devices or on more.
TEST(PlanText, WholeModelsThatFitNowhereGetOtherLayouts) {
  const auto refused = [](const std::string& cluster) -> std::string {
    Request request = request_of("llama2-70b", cluster);
    request.whole = true;
    return base::message_of([&] { require_plan(request, search(request)); });
  };
  EXPECT_THAT(refused("4x8xA100-80"), testing::EndsWith("; try --layouts any"));
  EXPECT_THAT(refused("1x4xA100-80"), HasSubstr("; try --layouts any --cluster "));
}

// Seconds, money and memory of a small run are not zeros.
TEST(PlanText, SmallNumbersHaveThreeDigits) {
  Request request = request_of("qwen2.5-0.5b", "1xcpu");
  EXPECT_THAT(cost_text(request, 0.0072, 100),
              testing::StartsWith("100 iterations: 0.000200 h, 0.000200 device-hours, $0.000010 at $0.05"));
  Call call;
  call.seconds = call.time.compute = 0.00123;
  EXPECT_THAT(call_row("policy.generate", call), HasSubstr("  0.00123  0.00123     0.00 "));
}

TEST(Sweep, MoreDevicesAreFasterAndWhatDoesNotFitSaysWhy) {
  const Request request = request_of("llama2-13b", "8xA100-80");
  const std::vector<Variant> variants = sweep(request, "devices=1,8,16");
  ASSERT_EQ(variants.size(), 3U);
  EXPECT_TRUE(variants[0].result.plans.empty());
  EXPECT_GT(variants[1].result.plans.at(0).seconds, variants[2].result.plans.at(0).seconds);
  EXPECT_THAT(sweep_text(variants, 100), HasSubstr("nothing fits"));
  EXPECT_THROW(sweep(request, "device=8"), base::InputError);
  EXPECT_THROW(sweep(request, "devices=0"), base::InputError);
  EXPECT_THROW(sweep(request, "devices=12"), base::InputError) << "half a node";
}

TEST(PlanText, MoneyHasASource) {
  Request request = request_of("llama2-7b", "8xA100-80");
  EXPECT_THAT(cost_text(request, 36, 100), HasSubstr("1.00 h, 8.00 GPU-hours, $12.80 at $1.60 an hour (assumed"));
  EXPECT_THAT(run_json(request, 36, 100).at("price_source").get<std::string>(), HasSubstr("assumed"));
  request.cluster.groups[0].gpu.dollars_per_hour = 2.5;
  request.cluster.groups[0].gpu.price_given = true;
  EXPECT_THAT(cost_text(request, 36, 100), testing::EndsWith("$20.00 at $2.50 an hour"));
  EXPECT_EQ(run_json(request, 36, 100).at("dollars"), 20.0);
  EXPECT_EQ(run_json(request, 36, 100).at("price_source"), "--price");
}

TEST(Sweep, APriceIsOfItsOwnKindOfDevice) {
  Request request = request_of("llama2-7b", "8xA100-80");
  request.cluster.groups[0].gpu.dollars_per_hour = 0.5;
  request.cluster.groups[0].gpu.price_given = true;
  const std::vector<Variant> variants = sweep(request, "gpu=A100-80,H100-80");
  EXPECT_EQ(variants.at(0).request.cluster.groups[0].gpu.dollars_per_hour, 0.5);
  EXPECT_EQ(variants.at(1).request.cluster.groups[0].gpu.dollars_per_hour,
            DeviceKinds().find("H100-80").dollars_per_hour);
}

TEST(Sweep, StalenessIsABound) {
  const std::vector<Variant> variants = sweep(request_of("llama2-7b", "8xA100-80"), "staleness=0,1");
  const Plan &none = variants.at(0).result.plans.at(0), &one = variants.at(1).result.plans.at(0);
  EXPECT_EQ(variants[1].result.synchrony.size(), 2U);
  EXPECT_LE(one.seconds, none.seconds * kAlike);
}

TEST(Sweep, AnotherDeviceKeepsNodesAndNetwork) {
  const std::vector<Variant> variants = sweep(request_of("llama2-7b", "4x4xA100-80@100Gb"), "gpu=H100-80");
  EXPECT_EQ(cluster_text(variants.at(0).request.cluster), "4x4xH100-80@100Gb");
}

}  // namespace
}  // namespace collimate::plan
