#include "collimate/flow/line_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

#include "collimate/base/at.h"
#include "collimate/flow/context.h"
#include "collimate/flow/dist_actor.h"
#include "tests/support/flow/toy_modules.h"

namespace collimate::flow {
namespace {

using Ranks = std::vector<int>;

// A model with a function of each kind, on devices 2 to 5.
graph::Graph two_functions() {
  graph::Graph graph;
  graph.models["policy"].functions = {toy::generate_spec(), toy::train_spec()};
  return graph;
}

graph::Placement on_four(const graph::Layout& generates, const graph::Layout& trains) {
  graph::Placement placement{.devices = 6};
  placement.groups["main"] = {{2, 3, 4, 5}, {"policy"}};
  placement.layouts["policy"] = {{"generate", generates}, {"train", trains}};
  return placement;
}

// Lists what each worker's Context has: the ranks of the lines that it was made to join.
struct Joined {
  std::map<int, std::map<std::string, Ranks>> lines;  // by worker, "function.axis"
  std::map<int, size_t> groups;                       // that each worker has joined
  std::map<int, Ranks> copies;                        // of train, by worker
  std::vector<LineGroups> kept;                       // the first to end would abort them
};

// Joins as threads, so that an order that waits in a circle never ends.
Joined join_all(const graph::Placement& placement, const std::string& name) {
  const graph::Graph graph = two_functions();
  Joined joined;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int worker = 2; worker < 6; ++worker)
    threads.emplace_back([&, worker] {
      Context context{.device = worker, .meshes = meshes_of(graph, placement, "policy", worker)};
      std::vector<std::pair<comm::Group*, Ranks>> known;  // in the order in which it joined
      const std::map<std::string, int> expert_ranks = {{"generate", placement.layout("policy", "generate").ep},
                                                       {"train", placement.layout("policy", "train").ep}};
      LineGroups groups(context.meshes, expert_ranks, worker, [&](const Ranks& ranks, int place) {
        EXPECT_EQ(base::at(ranks, place), worker);
        auto group = comm::back_end("threads").join(
            {fmt::format("{}/{}", name, fmt::join(ranks, "-")), "", place, static_cast<int>(ranks.size()), 20});
        known.emplace_back(group.get(), ranks);
        return group;
      });
      context.lines = groups.lines();
      std::vector<float> sum = {static_cast<float>(worker)};
      for (const auto& [group, ranks] : known) group->all_reduce(sum).wait(20);
      const std::lock_guard lock(mutex);
      joined.groups[worker] = known.size();
      joined.kept.push_back(std::move(groups));
      for (const char* function : {"generate", "train"})
        for (const char* axis : {"pp", "dp", "cp", "tp", kExperts, kExpertCopies})
          for (const auto& [group, ranks] : known)
            if (group == context.line(function, axis))
              joined.lines[worker][fmt::format("{}.{}", function, axis)] = ranks;
      for (const auto& [group, ranks] : known)
        if (group == context.copies("train")) joined.copies[worker] = ranks;
    });
  for (std::thread& thread : threads) thread.join();
  return joined;
}

TEST(LineGroups, EachFunctionHasThoseOfItsOwnLayout) {
  const Joined joined = join_all(on_four({.tp = 2}, {.dp = 4}), "own");
  using Lines = std::map<std::string, Ranks>;
  EXPECT_EQ(joined.lines.at(2), (Lines{{"generate.tp", {2, 3}}, {"train.dp", {2, 3, 4, 5}}}));
  EXPECT_EQ(joined.lines.at(5), (Lines{{"generate.tp", {4, 5}}, {"train.dp", {2, 3, 4, 5}}}));
}

TEST(LineGroups, LinesOfTheSameRanksShareOne) {
  const Joined joined = join_all(on_four({.tp = 2}, {.tp = 2, .dp = 2}), "same");
  using Lines = std::map<std::string, Ranks>;
  EXPECT_EQ(joined.lines.at(4), (Lines{{"generate.tp", {4, 5}}, {"train.dp", {2, 4}}, {"train.tp", {4, 5}}}));
  for (const auto& [worker, count] : joined.groups) EXPECT_EQ(count, 2U) << worker;
}

TEST(LineGroups, CopiesAreAlongDpAndCp) {
  const Joined both = join_all(on_four({}, {.cp = 2, .dp = 2}), "copies");
  using Lines = std::map<std::string, Ranks>;
  EXPECT_EQ(both.lines.at(4), (Lines{{"train.cp", {4, 5}}, {"train.dp", {2, 4}}}));
  EXPECT_EQ(both.copies.at(4), (Ranks{2, 3, 4, 5}));
  EXPECT_EQ(join_all(on_four({}, {.cp = 4}), "context").copies.at(3), (Ranks{2, 3, 4, 5}));
  EXPECT_EQ(join_all(on_four({}, {.tp = 2, .cp = 2}), "pieces").copies.at(3), (Ranks{3, 5}));
  EXPECT_TRUE(join_all(on_four({}, {.tp = 4}), "alone").copies.empty());
}

// Neighbours share experts, in whatever ways the rest of a function is cut.
TEST(LineGroups, ExpertsAreSharedByNeighboursAmongTheCopies) {
  const Joined joined = join_all(on_four({.ep = 2, .dp = 2}, {.ep = 2, .dp = 4}), "experts");
  EXPECT_EQ(joined.lines.at(4).at("generate.ep"), (Ranks{4, 5}));
  EXPECT_EQ(joined.lines.at(4).at("train.ep"), (Ranks{4, 5}));
  EXPECT_EQ(joined.lines.at(4).at("train.expert copies"), (Ranks{2, 4}));
  EXPECT_EQ(joined.lines.at(4).count("generate.expert copies"), 0U) << "nobody else has its experts";
  const Joined context = join_all(on_four({}, {.cp = 2, .ep = 2, .dp = 2}), "context experts");
  EXPECT_EQ(context.lines.at(3).at("train.ep"), (Ranks{2, 3}));
  EXPECT_EQ(context.lines.at(3).at("train.expert copies"), (Ranks{3, 5}));
  const Joined pieces = join_all(on_four({}, {.tp = 2, .ep = 2, .dp = 2}), "pieces of experts");
  EXPECT_EQ(pieces.lines.at(3).at("train.ep"), (Ranks{3, 5}));
}

TEST(LineGroups, AFunctionWithoutALayoutStandsAlone) {
  const graph::Placement placement = on_four({}, {});
  const Context context{
      .device = 3, .alone = comm::Mesh({}, {3}), .meshes = meshes_of(two_functions(), placement, "policy", 3)};
  EXPECT_EQ(context.mesh("generate").ranks(), Ranks{3});
  EXPECT_EQ(context.mesh("train").size("dp"), 4);
  EXPECT_EQ(context.mesh("train").coordinate(3, "dp"), 1);
  EXPECT_EQ(context.mesh("no such function").ranks(), Ranks{3});
  EXPECT_EQ(context.line("train", "dp"), nullptr) << "nobody has joined";
}

}  // namespace
}  // namespace collimate::flow
