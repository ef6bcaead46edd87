#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <random>

#include "tests/fault/cli_support.h"
#include "tests/fault/runs.h"
#include "tests/support/graph/replay.h"
#include "tests/support/saved_values.h"
#include "tests/support/small_families.h"

// A run that is killed goes on in another layout than it began in.
namespace collimate::test {
namespace {

using testing::HasSubstr;

using Sets = std::vector<std::string>;

Sets on_devices(int devices) { return {"--set", fmt::format("devices={}", devices)}; }
Sets apart_from_the_driver(Sets sets) {
  sets.insert(sets.end(), {"--set", "cluster=local-processes"});
  return sets;
}
// All models on so many devices, which train the policy by that stage of ZeRO.
Sets sharing(int devices, int zero) {
  std::vector<int> ids;
  for (int d = 0; d < devices; ++d) ids.push_back(d);
  return {"--set", fmt::format("placement={{version: 1, devices: {{count: {0}, kind: cpu}}, groups: {{all: {{devices: "
                               "[{1}], models: [policy, policy_trainer, reference]}}}}, layouts: {{policy_trainer: "
                               "{{train: {{dp: {0}, zero: {2}}}}}}}}}",
                               devices, fmt::join(ids, ", "), zero)};
}
const Sets kGenerationApart = {"--set",
                               "placement={version: 1, devices: {count: 2, kind: cpu}, groups: {training: {devices: "
                               "[0], models: [policy_trainer, reference]}, generation: {devices: [1], models: "
                               "[policy]}}}"};

std::map<std::string, std::string> samples_of(const std::string& output) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(output + "/samples"))
    files[entry.path().filename().string()] = read_text(entry.path());
  return files;
}

class OtherLayout : public testing::Test {
 protected:
  void write(const std::string& recipe, const std::string& lines) { runs_.emplace("other-layout", recipe, lines); }
  std::string directory(const std::string& run) const { return runs_->directory(run); }
  SavedValues saved(const std::string& run, const std::string& model = "policy_trainer", size_t tp = 1) const {
    return saved_values_of(directory(run), model, kIterations, tp);
  }

  void finish(const std::string& run, const Sets& sets) {
    const host::CommandResult result = runs_->train(run, sets, {});
    ASSERT_TRUE(result.status.ok()) << result.status.description() << ": " << result.errors;
    EXPECT_EQ(graph::check_recording(read_text(directory(run) + "/events.jsonl")), "") << run;
  }
  void kill_at(const std::string& run, const Sets& sets, const std::string& place) {
    const host::CommandResult killed = runs_->train(run, sets, {{"COLLIMATE_TEST_KILL_AT", place}});
    ASSERT_EQ(killed.status.signal, SIGKILL) << place << ": " << killed.status.description() << killed.errors;
  }
  // Kills the program at that place in one layout and goes on in the other.
  void move(const std::string& run, const Sets& from, const std::string& place, const Sets& to) {
    ASSERT_NO_FATAL_FAILURE(kill_at(run, from, place));
    finish(run, to);
  }
  void expect_same_run(const std::string& run, const std::string& whole, const Sets& models, size_t tp = 1) {
    EXPECT_EQ(lasting_metrics(directory(run)), lasting_metrics(directory(whole))) << run;
    EXPECT_EQ(samples_of(directory(run)), samples_of(directory(whole))) << run;
    for (const std::string& model : models) {
      EXPECT_GT(saved(run, model, tp).size(), 10U);
      EXPECT_TRUE(saved(run, model, tp) == saved(whole, model, tp)) << run << ": another " << model;
    }
    const std::string file = "/model/model.safetensors";
    EXPECT_TRUE(read_text(directory(run) + file) == read_text(directory(whole) + file)) << run;
  }
  // Runs are moved from each of the layouts to the next one, at one place after the other.
  void expect_equal_wherever(const std::vector<Sets>& layouts, const std::vector<std::string>& places,
                             const Sets& models) {
    ASSERT_NO_FATAL_FAILURE(finish("whole", layouts.front()));
    for (size_t i = 0; i < places.size(); ++i) {
      const std::string run = fmt::format("moved-{}", i);
      ASSERT_NO_FATAL_FAILURE(move(run, layouts[i % layouts.size()], places[i], layouts[(i + 1) % layouts.size()]));
      expect_same_run(run, "whole", models);
    }
  }

  std::optional<Runs> runs_;
};

constexpr const char* kBeta = "algorithm: {beta: 0.04}\n";

TEST_F(OtherLayout, StagesOfZeroAndProcessesChangeNoBit) {
  write("grpo", kBeta);
  expect_equal_wherever(
      {sharing(2, 1), sharing(2, 0), apart_from_the_driver(sharing(2, 1))},
      {"policy_trainer.train:5", "optimizer.parameter:70", "directory.before_rename:3", "policy.generate:30"},
      {"policy_trainer"});
}

TEST_F(OtherLayout, GenerationOnADeviceOfItsOwnChangesNoBit) {
  write("grpo", kBeta);
  expect_equal_wherever({on_devices(1), kGenerationApart, apart_from_the_driver(on_devices(1))},
                        {"policy_trainer.train:3", "policy.generate:20", "directory.before_rename:2"},
                        {"policy_trainer"});
}

TEST_F(OtherLayout, AdaptersAreSharedOutAnew) {
  write("grpo", kBeta);
  runs_->edit("initializer_std: 0.1", "initializer_std: 0.1, lora: {rank: 4}");
  expect_equal_wherever({sharing(2, 1), sharing(2, 0)}, {"policy_trainer.train:5", "optimizer.parameter:70"},
                        {"policy_trainer"});
}

TEST_F(OtherLayout, TwoModelsThatAreTrainedGoOnAsProcesses) {
  write("ppo", "");
  expect_equal_wherever({on_devices(2), apart_from_the_driver(on_devices(2))},
                        {"value.train:5", "directory.before_rename:3"}, {"policy_trainer", "value"});
}

// A policy that is trained beside its reference: layouts of one of these families give the same bits.
struct Family {
  std::string name;
  std::vector<Sets> layouts;
  int kills = 17;
  size_t tp = 1;
  std::string model = "llama";
};

Sets set_all(const std::vector<std::string>& values) {
  Sets sets;
  for (const std::string& value : values) sets.insert(sets.end(), {"--set", value});
  return sets;
}

std::vector<Family> families() {
  const Sets one = on_devices(1), staged = set_all({"devices=2", "pp=2"}), shared = sharing(2, 1),
             staged_ranks = set_all({"devices=4", "pp=2"}), context = set_all({"devices=2", "cp=2"}),
             staged_context = set_all({"devices=4", "pp=2", "cp=2"}), pieces = set_all({"devices=2", "tp=2"}),
             parts = set_all({"devices=2", "zero=3"}), experts = set_all({"devices=2", "ep=2", "zero=2"});
  return {
      {"one", {one, staged, kGenerationApart, apart_from_the_driver(staged)}},
      {"data", {shared, sharing(2, 0), staged_ranks, apart_from_the_driver(shared)}},
      {"context", {context, staged_context, apart_from_the_driver(context)}},
      {.name = "tensor",
       .layouts = {pieces, set_all({"devices=4", "tp=2", "pp=2"}), apart_from_the_driver(pieces)},
       .kills = 4,
       .tp = 2},
      {.name = "zero3", .layouts = {parts, set_all({"devices=2", "zero=2"}), apart_from_the_driver(parts)}, .kills = 4},
      {.name = "experts",
       .layouts = {experts, set_all({"devices=2", "ep=2", "zero=3"}), apart_from_the_driver(experts)},
       .kills = 4,
       .model = "mixtral"}};
}

// A place of the program itself, or of one of its workers' threads, and the passage at which it is killed.
std::string random_place(std::mt19937& random, bool of_workers) {
  const std::vector<std::pair<const char*, int>> driver = {
      {"directory.before_rename", 4}, {"directory.after_rename", 4}, {"file.before_rename", 4}};
  const std::vector<std::pair<const char*, int>> workers = {{"policy.generate", 20},    {"advantages", 4},
                                                            {"reference.log_probs", 4}, {"policy_trainer.train", 4},
                                                            {"model.backward", 8},      {"optimizer.parameter", 60}};
  const auto& places = of_workers && random() % 4 != 0 ? workers : driver;
  const auto& [name, passages] = places[random() % places.size()];
  return fmt::format("{}:{}", name, 1 + random() % static_cast<unsigned>(passages));
}

class RandomKills : public OtherLayout, public testing::WithParamInterface<int> {};

TEST_P(RandomKills, GoOnInAnyLayoutWithTheSameBits) {
  write("grpo", kBeta);
  const Family family = families()[static_cast<size_t>(GetParam())];
  write_small_model_of(family.model, runs_->scratch().path() / "start");
  ASSERT_NO_FATAL_FAILURE(finish("whole", family.layouts.front()));
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (int kill = 0; kill < family.kills; ++kill) {
    const size_t from = random() % family.layouts.size(), to = random() % family.layouts.size();
    const bool of_workers = !std::ranges::count(family.layouts[from], "cluster=local-processes");
    const std::string place = random_place(random, of_workers), run = fmt::format("{}-{}", family.name, kill);
    SCOPED_TRACE(fmt::format("{} from {} to {}", place, fmt::join(family.layouts[from], " "),
                             fmt::join(family.layouts[to], " ")));
    ASSERT_NO_FATAL_FAILURE(move(run, family.layouts[from], place, family.layouts[to]));
    expect_same_run(run, "whole", {"policy_trainer"}, family.tp);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, RandomKills, testing::Range(0, 6));

// ‖a − b‖ / ‖a‖ of all tensors of an array.
double relative_distance(const SavedValues& a, const SavedValues& b, const std::string& array) {
  double difference = 0, size = 0;
  for (const auto& [name, values] : a) {
    if (!name.starts_with(array)) continue;
    const std::vector<float>& others = b.at(name);
    EXPECT_EQ(values.size(), others.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(double{values[i]} - others.at(i), 2);
      size += std::pow(double{values[i]}, 2);
    }
  }
  EXPECT_GT(size, 0);
  return std::sqrt(difference / size);
}

// Sums over other numbers of ranks are equal to rounding: the samples of the first iteration there are the same bits,
// and all that follows is close; stages of ZeRO change no bit there either.
TEST_F(OtherLayout, OtherNumbersOfRanksGoOnFromTheSameState) {
  write("grpo", kBeta);
  const std::vector<std::pair<Sets, int>> moves = {{sharing(2, 1), 1}, {sharing(1, 0), 2}, {sharing(2, 0), 3}};
  for (const auto& [from, ranks] : moves) {
    const std::string there = fmt::format("on-{}", ranks), whole = "before-" + there;
    ASSERT_NO_FATAL_FAILURE(finish(whole, from));
    ASSERT_NO_FATAL_FAILURE(move(there, from, "directory.after_rename:2", sharing(ranks, ranks > 1 ? 1 : 0)));
    if (ranks > 1) {
      ASSERT_NO_FATAL_FAILURE(move(there + "-whole", from, "directory.after_rename:2", sharing(ranks, 0)));
      expect_same_run(there, there + "-whole", {"policy_trainer"});
    }
    for (int step = 1; step <= 3; ++step) {
      const std::string samples = fmt::format("/samples/step-{:06}.jsonl", step);
      EXPECT_EQ(read_text(directory(there) + samples), read_text(directory(whole) + samples)) << there << " " << step;
    }
    const auto metrics = lasting_metrics(directory(there)), expected = lasting_metrics(directory(whole));
    ASSERT_EQ(metrics.size(), static_cast<size_t>(kIterations));
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(metrics[i], expected[i]) << there;
    EXPECT_LT(relative_distance(saved(whole), saved(there), "weights "), 1e-5) << there;
    for (const char* moment : {"adamw.first ", "adamw.second "})
      EXPECT_LT(relative_distance(saved(whole), saved(there), moment), 1e-3) << there << moment;
  }
}

// Matrices that were cut over devices are whole on one, and the other way round. With sums in as many pieces as there
// are ranks the weights, but not the norm of their gradients, have the bits of one rank.
TEST_F(OtherLayout, PiecesOfMatricesAreJoinedAndCut) {
  write("grpo", kBeta);
  const Sets pieces = {"--set", "models.policy.reduction_chunks=2", "--set", "train.max_grad_norm=0"};
  const auto with_pieces = [&](Sets sets) {
    sets.insert(sets.end(), pieces.begin(), pieces.end());
    return sets;
  };
  const Sets one = with_pieces(on_devices(1)), two = with_pieces({"--set", "devices=2", "--set", "tp=2"});
  ASSERT_NO_FATAL_FAILURE(finish("whole", one));
  ASSERT_NO_FATAL_FAILURE(move("joined", two, "directory.before_rename:3", one));
  ASSERT_NO_FATAL_FAILURE(kill_at("cut", one, "directory.before_rename:3"));
  ASSERT_NO_FATAL_FAILURE(kill_at("cut", two, "directory.after_rename:2"));  // its last checkpoint is saved
  for (const std::string run : {"joined", "cut"}) {
    const std::string third = "/samples/step-000003.jsonl";  // by what was loaded
    EXPECT_EQ(read_text(directory(run) + third), read_text(directory("whole") + third)) << run;
    for (const char* array : {"weights ", "adamw.first ", "adamw.second "})
      EXPECT_LT(relative_distance(saved("whole"), saved(run, "policy_trainer", 2), array), 1e-5) << run << " " << array;
  }
}

TEST_F(OtherLayout, IsToldAndTheConfigsHashIsOfNone) {
  write("sft", "");
  const host::CommandResult killed =
      runs_->train("moved", on_devices(2), {{"COLLIMATE_TEST_KILL_AT", "policy.train:5"}});
  ASSERT_EQ(killed.status.signal, SIGKILL) << killed.status.description() << killed.errors;
  const host::CommandResult moved = runs_->train("moved", {}, {});
  ASSERT_TRUE(moved.status.ok()) << moved.status.description() << ": " << moved.errors;
  EXPECT_THAT(moved.errors, HasSubstr("\nchanged: devices: 2 -> 1\n"));
  EXPECT_THAT(moved.errors, HasSubstr("those of another placement: a new recording begins here"));
  ASSERT_NO_FATAL_FAILURE(finish("two", on_devices(2)));
  const auto hash = [&](const std::string& run) {
    return nlohmann::json::parse(read_text(directory(run) + "/summary.json")).at("config_hash").get<std::string>();
  };
  EXPECT_EQ(hash("moved"), hash("two"));
  const host::CommandResult other = runs_->train("moved", {"--set", "train.learning_rate=2e-3"}, {});
  EXPECT_THAT(other.errors, HasSubstr("of another config (train.learning_rate: 0.001 -> 0.002)"));
}

}  // namespace
}  // namespace collimate::test
