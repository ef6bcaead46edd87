#include "collimate/flow/checkpoints.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "collimate/base/error.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/flow/shared_store.h"
#include "collimate/host/file_io.h"
#include "tests/support/base/error_of.h"
#include "tests/support/fault_control.h"

namespace collimate::flow {
namespace {

TEST(Checkpoints, AreCompleteOrAbsentAndOldOnesGo) {
  std::string directory = testing::TempDir() + "collimate-checkpoints-" + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  Checkpoints checkpoints(directory);
  EXPECT_EQ(checkpoints.latest(), "");
  SharedStore store;
  for (int64_t step : {1, 2, 10}) {
    store.put("x", step, step);
    save_state(store, checkpoints.begin(step) + "/store");
    checkpoints.commit();
  }
  save_state(store, checkpoints.begin(11) + "/store");  // a kill before commit
  ASSERT_EQ(checkpoints.list().size(), 2U);
  EXPECT_EQ(checkpoint_step(checkpoints.latest()), 10);
  SharedStore loaded;
  load_state(loaded, checkpoints.latest() + "/store");
  EXPECT_EQ(loaded.get("x", 10), 10);
  EXPECT_THROW(load_state(loaded, directory + "/none"), base::RunError);
  EXPECT_THROW(checkpoint_step(directory), base::InputError);
}

TEST(Checkpoints, NamesOfOtherDirectoriesAreNoSteps) {
  EXPECT_EQ(checkpoint_step("run/checkpoints/step-000012/"), 12);
  for (const char* other : {"step-", "step-1a", "step-\xC3\xA9", "step-99999999999999999999", "stop-1"})
    EXPECT_THROW(checkpoint_step(other), base::InputError) << other;
}

TEST(Checkpoints, WhatIsMissingForeignOrOfAnotherStepIsDamage) {
  const std::string directory = testing::TempDir() + "collimate-damage-" + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  Checkpoints checkpoints(directory);
  SharedStore store;
  for (int64_t step : {1, 2}) {
    store.put("x", step, step);
    const std::string building = checkpoints.begin(step);
    for (const char* folder : {"/store", "/models/other/rank-0"}) save_state(store, building + folder);
    checkpoints.commit();
  }
  checkpoints.settle();
  const std::string first = checkpoints.list().front(), second = checkpoints.latest(), kept = directory + "/kept";
  EXPECT_EQ(damage_in(second), "");
  EXPECT_EQ(damage_in(second + "/"), "");
  const auto expect_damage = [&](const std::string& part) {
    EXPECT_NE(damage_in(second).find(part), std::string::npos) << part << " in " << damage_in(second);
  };
  std::filesystem::rename(second + "/models", kept);
  expect_damage(second + "/models/other/rank-0] expected a saved folder, got none");
  std::filesystem::copy(first + "/models", second + "/models", std::filesystem::copy_options::recursive);
  expect_damage(second + "/models/other/rank-0/files.json] expected");
  std::filesystem::remove_all(second + "/models");
  std::filesystem::rename(kept, second + "/models");
  save_state(store, second + "/models/other/rank-1");
  expect_damage("expected a file that checkpoint.json lists, got another");
  std::filesystem::remove_all(second);
  std::filesystem::rename(first, second);
  expect_damage("expected the state of step 2, got that of step 1");
}

TEST(Checkpoints, AFolderThatTheSystemCannotReadIsNamed) {
  const std::string directory = testing::TempDir() + "collimate-unread-" + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory + "/checkpoints");
  const std::string loop = directory + "/checkpoints/step-000001";
  std::filesystem::create_symlink(loop, loop);
  EXPECT_EQ(base::message_of<base::RunError>([&] { Checkpoints(directory).list(); }),
            fmt::format("[{}] expected to look for it, got Too many levels of symbolic links", loop));
}

// Rows of a tensor of six that a rank has, and a number.
struct RankState : base::Stateful {
  RankState(int rank, int ranks, int its_number = 0)
      : first(6 * rank / ranks), count(6 * (rank + 1) / ranks - first), number(its_number) {}
  base::TensorPart part() const { return {.name = "w", .rows = 6, .columns = 1, .box = {first, count, 0, 1}}; }
  void fill() {
    for (int64_t r = first; r < first + count; ++r) rows.push_back(static_cast<float>(r));
  }
  void save(base::StateWriter& out) const override {
    out.json("number", number);
    if (count > 0) out.tensors("weights", 0, std::vector{part()}, rows);
  }
  void load(base::StateReader& in) override {
    number = in.json("number");
    rows.assign(static_cast<size_t>(count), -1.0F);
    in.tensors("weights", std::vector{part()}, rows);
  }

  int64_t first, count;
  int number;
  std::vector<float> rows;
};

std::string saved_ranks(const std::string& name, int ranks, bool unlike) {
  std::string directory = testing::TempDir() + "collimate-ranks-" + std::to_string(getpid()) + "-" + name;
  std::filesystem::remove_all(directory);
  for (int r = 0; r < ranks; ++r) {
    RankState state(r, ranks, unlike ? r : 5);
    state.fill();
    save_state(state, rank_folder(directory, "policy", r));
  }
  return directory;
}

TEST(Checkpoints, AModelIsLoadedByAnyNumberOfRanks) {
  for (const int before : {1, 2, 4, 7}) {
    const std::string saved = saved_ranks("any", before, /*unlike=*/false);
    for (const int now : {1, 2, 3, 7})
      for (int r = 0; r < now; ++r) {
        RankState expected(r, now), state(r, now);
        expected.fill();
        load_rank(state, saved, "policy", r, now);
        EXPECT_EQ(state.rows, expected.rows) << r << " of " << now << " from " << before;
        EXPECT_EQ(state.number, 5);
      }
  }
}

TEST(Checkpoints, WhatRanksHaveOfTheirOwnStaysWithAsManyOfThem) {
  const std::string saved = saved_ranks("own", 3, /*unlike=*/true);
  RankState state(1, 3), alone(0, 1);
  load_rank(state, saved, "policy", 1, 3);
  EXPECT_EQ(state.number, 1);
  EXPECT_EQ(base::message_of([&] { load_rank(alone, saved, "policy", 0, 1); }),
            "[" + saved +
                "/models/policy] expected the states of 1 ranks, as each has another one, got 3; try as many "
                "devices for it as there were");
}

TEST(Checkpoints, OfAnotherFormNameTheVersionsThatWroteThem) {
  const std::string directory = testing::TempDir() + "collimate-form-" + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  Checkpoints checkpoints(directory);
  save_state(SharedStore(), checkpoints.begin(1) + "/store");
  const std::string saved = checkpoints.commit(), list = saved + "/checkpoint.json";
  checkpoints.settle();
  EXPECT_NO_THROW(check_form(saved));
  const auto problem_of = [&](const char* form) {
    nlohmann::json content = nlohmann::json::parse(host::read_file(list));
    content.erase("form");
    if (*form != '\0') content["form"] = nlohmann::json::parse(form);
    host::write_file_atomically(list, content.dump());
    return base::message_of([&] { check_form(saved); });
  };
  EXPECT_EQ(problem_of(""), "[" + list +
                                "] expected a checkpoint of form 2, got form 1, which builds of 0.1.0 "
                                "before decision 40 write; try the program that wrote it, or a new --output");
  EXPECT_NE(problem_of("3").find("got form 3, which later versions write"), std::string::npos);
}

// Saves the states after so many steps each, and gives the steps of the checkpoints that are left.
std::vector<int64_t> left_of(const std::string& name, const std::vector<int64_t>& steps, const Retention& keep) {
  const std::string directory = testing::TempDir() + "collimate-kept-" + std::to_string(getpid()) + name;
  std::filesystem::remove_all(directory);
  Checkpoints checkpoints(directory, keep);
  for (const int64_t step : steps) {
    save_state(SharedStore(), checkpoints.begin(step) + "/store");
    checkpoints.commit();
  }
  checkpoints.settle();
  std::vector<int64_t> left;
  for (const std::string& path : checkpoints.list()) left.push_back(checkpoint_step(path));
  if (keep.value && !left.empty()) left.push_back(checkpoint_step(checkpoints.best()));
  return left;
}

// The states after 8 and 12 steps are the best; those after 6 and 16 were not measured.
std::optional<double> value_after(int64_t step) {
  const std::map<int64_t, double> values = {{2, -3.0}, {4, -1.0}, {8, 0.5}, {10, 0.25}, {12, 0.5}, {14, 0.0}};
  const auto found = values.find(step);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

TEST(Checkpoints, TheBestIsKeptBesideTheNewest) {
  using Steps = std::vector<int64_t>;
  const Steps all = {2, 4, 6, 8, 10, 12, 14, 16};
  EXPECT_EQ(left_of("count", all, {.newest = 3}), (Steps{12, 14, 16}));
  EXPECT_EQ(left_of("one", all, {.newest = 1, .value = value_after}), (Steps{8, 16, /*best:*/ 8}));
  EXPECT_EQ(left_of("first", {2, 4, 6}, {.newest = 1, .value = value_after}), (Steps{4, 6, 4}));
  EXPECT_EQ(left_of("newest", {2, 4, 6, 8}, {.newest = 2, .value = value_after}), (Steps{4, 6, 8, 8}));
  EXPECT_EQ(left_of("again", {2, 4, 6, 4, 6}, {.newest = 3}), (Steps{2, 4, 6}));
  EXPECT_EQ(Checkpoints(testing::TempDir() + "collimate-none", {.value = value_after}).best(), "");
}

TEST(Checkpoints, AFileThatIsGoneBeforeItIsOnTheDiskIsAnError) {
  const std::string directory = testing::TempDir() + "collimate-lost-" + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  Checkpoints checkpoints(directory);
  const std::string building = checkpoints.begin(1);
  save_state(SharedStore(), building + "/store");
  const base::CountAnswers lose([&](std::string_view place, int64_t count) {
    if (place == "checkpoint.commit") std::filesystem::remove_all(building);
    return count;
  });
  checkpoints.commit();
  EXPECT_THROW(checkpoints.settle(), std::exception);
  EXPECT_NO_THROW(checkpoints.settle());
  EXPECT_EQ(checkpoints.latest(), "");
}

}  // namespace
}  // namespace collimate::flow
