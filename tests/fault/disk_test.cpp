#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/fault/runs.h"

// A run notices and names what a disk does to its files, and can get over it.
namespace collimate::test {
namespace {

void flip_bit(const std::string& path, int64_t at) {
  std::string bytes = read_text(path);
  bytes.at(static_cast<size_t>(at)) = static_cast<char>(bytes.at(static_cast<size_t>(at)) ^ 1);
  write_text(path, bytes);
}

void expect_refused(Runs& runs, const std::vector<std::string>& more, const std::vector<std::string>& parts) {
  const host::CommandResult result = runs.train("run", more, {});
  EXPECT_EQ(result.status.code, 2) << result.status.description() << ": " << result.errors;
  for (const std::string& part : parts)
    EXPECT_NE(last_line(result.errors).find(part), std::string::npos) << part << " in " << result.errors;
}

// Two checkpoints, and perhaps a part of an iteration behind them.
class Disk : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(runs_.kill_at("directory.after_rename:2", "run")); }
  void expect_told(const std::string& part) {
    const host::CommandResult result = runs_.train("run", {}, {});
    EXPECT_TRUE(result.status.ok()) << result.status.description() << ": " << result.errors;
    EXPECT_THAT(result.errors, testing::HasSubstr(part));
  }
  std::string run() const { return runs_.directory("run"); }
  std::string newest() const { return checkpoint_of(run(), 2); }
  std::string weights(const std::string& file) const { return newest() + "/models/policy/rank-0/" + file; }

  Runs runs_{"disk", "sft", ""};
};

TEST_F(Disk, AFlippedBitOfACheckpointIsNamedWithTheOneToGoOnFrom) {
  ASSERT_NO_FATAL_FAILURE(runs_.finish("whole"));
  for (const std::string file : {"weights.1.bin", "adamw.first.0.bin", "tensors.json", "state.json", "files.json"}) {
    const std::string before = read_text(weights(file));
    flip_bit(weights(file), static_cast<int64_t>(before.size()) / 2);
    expect_refused(runs_, {}, {weights(file == "files.json" ? "" : file), "--resume " + checkpoint_of(run(), 1)});
    write_text(weights(file), before);
  }
  const std::string list = newest() + "/checkpoint.json", before = read_text(list);
  for (size_t at = 0; at < before.size(); at += std::max<size_t>(1, before.size() / 12)) {
    flip_bit(list, static_cast<int64_t>(at));
    expect_refused(runs_, {}, {newest(), "--resume " + checkpoint_of(run(), 1)});
    write_text(list, before);
  }
  write_text(list, before.substr(0, before.size() / 2));
  expect_refused(runs_, {}, {list, "--resume " + checkpoint_of(run(), 1)});
  write_text(list, before);
  fs::rename(weights("weights.1.bin"), weights("weights.9.bin"));
  expect_refused(runs_, {}, {"weights."});
  ASSERT_NO_FATAL_FAILURE(runs_.finish("run", {"--resume", checkpoint_of(run(), 1)}));
  const std::string model = "/model/model.safetensors";
  EXPECT_TRUE(read_text(run() + model) == read_text(runs_.directory("whole") + model));
  EXPECT_EQ(lasting_metrics(run()), lasting_metrics(runs_.directory("whole")));
}

TEST_F(Disk, FoldersThatAreMissingOrOfAnotherStepAreNamedWithTheOneToGoOnFrom) {
  const std::string remedy = "--resume " + checkpoint_of(run(), 1), kept = run() + "/kept";
  for (const std::string folder : {"models/policy/rank-0", "store", "state-0", "models"}) {
    fs::rename(newest() + "/" + folder, kept);
    expect_refused(runs_, {}, {newest() + "/" + folder, remedy});
    fs::rename(kept, newest() + "/" + folder);
  }
  fs::rename(newest() + "/models/policy/rank-0", kept);
  fs::copy(checkpoint_of(run(), 1) + "/models/policy/rank-0", newest() + "/models/policy/rank-0");
  expect_refused(runs_, {}, {weights("files.json"), remedy});
}

TEST_F(Disk, WithoutAnotherCheckpointItSaysSo) {
  fs::remove_all(checkpoint_of(run(), 1));
  flip_bit(weights("weights.1.bin"), 0);
  expect_refused(runs_, {}, {"no earlier checkpoint is undamaged"});
}

TEST_F(Disk, MetricsThatAreNotAsWrittenAreNamed) {
  const std::string metrics = run() + "/metrics.jsonl", before = read_text(metrics);
  flip_bit(metrics, static_cast<int64_t>(before.find("\"step\":1")) + 8);
  expect_refused(runs_, {}, {metrics, "others; try restoring the file, or moving it away"});
  write_text(metrics, before.substr(0, before.size() / 2));
  expect_refused(runs_, {}, {metrics, "bytes; try restoring the file, or moving it away"});
  ASSERT_TRUE(fs::remove(metrics));
  const host::CommandResult rest = runs_.train("run", {}, {});
  ASSERT_TRUE(rest.status.ok()) << rest.errors;
  EXPECT_NE(rest.errors.find("are gone: a new recording begins"), std::string::npos) << rest.errors;
}

TEST_F(Disk, AFinishedRunOutlivesALineThatCannotBeRead) {
  ASSERT_NO_FATAL_FAILURE(runs_.finish("run"));
  flip_bit(run() + "/metrics.jsonl", 0);
  ASSERT_NO_FATAL_FAILURE(runs_.finish("run"));
  EXPECT_NE(read_text(run() + "/report.html").find("a line of metrics.jsonl that cannot be read"), std::string::npos);
}

TEST_F(Disk, AFinishedRunSaysThatItsRecordsAreCutOrGone) {
  ASSERT_NO_FATAL_FAILURE(runs_.finish("run"));
  const std::string metrics = run() + "/metrics.jsonl", before = read_text(metrics);
  write_text(metrics, before.substr(0, before.size() / 4));
  expect_told("bytes; try restoring the file");
  ASSERT_TRUE(fs::remove(metrics));
  expect_told("bytes that were written are gone");
  EXPECT_THAT(read_text(run() + "/report.html"), testing::HasSubstr("directory with metrics.jsonl"));
  EXPECT_EQ(run_collimate({"report", run()}).status.code, 2);
}

TEST_F(Disk, AFinishedRunExportsAModelThatIsCutOrGoneAgain) {
  ASSERT_NO_FATAL_FAILURE(runs_.finish("run"));
  const std::string weights = run() + "/model/model.safetensors", config = run() + "/model/config.json";
  const std::string before = read_text(weights);
  const std::function<void()> losses[] = {[&] { fs::remove(weights); }, [&] { fs::remove(config); },
                                          [&] { fs::resize_file(weights, before.size() / 2); }};
  for (const auto& lose : losses) {
    lose();
    ASSERT_NO_FATAL_FAILURE(runs_.finish("run"));
    EXPECT_TRUE(read_text(weights) == before);
    EXPECT_TRUE(fs::exists(config));
  }
}

TEST_F(Disk, WithoutWhatItBeganFromARunSaysThatNothingWasCompared) {
  ASSERT_TRUE(fs::remove(run() + "/models.json"));
  expect_told("models.json is gone: files and data are not compared");
  EXPECT_TRUE(fs::exists(run() + "/models.json"));
}

TEST(DiskFiles, AFinishedRunOutlivesRecordsThatCannotBeRead) {
  Runs runs("records", "grpo", "");
  ASSERT_NO_FATAL_FAILURE(runs.finish("run"));
  const std::string run = runs.directory("run");
  std::vector<std::string> records = {run + "/trace.json"};
  for (const fs::directory_entry& entry : fs::directory_iterator(run + "/samples"))
    if (entry.is_regular_file()) records.push_back(entry.path().string());
  ASSERT_GT(records.size(), 1U);
  for (const std::string& record : records) flip_bit(record, 0);
  const host::CommandResult result = runs.train("run", {}, {});
  EXPECT_TRUE(result.status.ok()) << result.status.description() << ": " << result.errors;
  const std::string page = read_text(run + "/report.html");
  for (const char* name : {"/trace.json", "/samples/"}) {
    EXPECT_THAT(result.errors, testing::HasSubstr(run + name));
    EXPECT_THAT(page, testing::HasSubstr(run + name));
  }
  EXPECT_EQ(run_collimate({"report", run}).status.code, 2);
}

// SIGXFSZ would end the process without a word.
TEST_F(Disk, ALimitOnTheSizeOfFilesIsAnErrorThatNamesTheFile) {
  host::ChildOptions options;
  options.command = {
      "bash",     "-c", "ulimit -f 8; exec \"$@\"", "bash", COLLIMATE_BIN_DIR "/collimate", "train", runs_.config(),
      "--output", run()};
  const host::CommandResult result = host::run_command(options, "", base::Deadline::after(120));
  EXPECT_EQ(result.status.code, 1) << result.status.description() << ": " << result.errors;
  EXPECT_NE(result.errors.find("File too large; try a higher limit on the size of files (ulimit -f)"),
            std::string::npos)
      << result.errors;
}

TEST(DiskFiles, AModelsFileThatIsAFifoIsRefused) {
  Runs runs("fifo", "sft", "");
  ASSERT_NO_FATAL_FAILURE(runs.finish("whole"));
  const std::string model = runs.directory("whole") + "/model";
  for (const std::string file : {"model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json",
                                 "generation_config.json", "special_tokens_map.json"}) {
    const bool there = fs::exists(model + "/" + file);
    if (there) fs::rename(model + "/" + file, model + "/kept");
    ASSERT_EQ(::mkfifo((model + "/" + file).c_str(), 0600), 0);
    const host::CommandResult result = run_collimate({"generate", model, "--prompt", "12"});
    EXPECT_EQ(result.status.code, 2) << file << ": " << result.status.description() << ": " << result.errors;
    EXPECT_NE(result.errors.find(file + "] expected a regular file, got a pipe"), std::string::npos) << result.errors;
    EXPECT_FALSE(result.timed_out) << file;
    fs::remove(model + "/" + file);
    if (there) fs::rename(model + "/kept", model + "/" + file);
  }
}

// A report of what can be read, an error of what cannot; no file of a run that became a pipe makes anyone wait.
TEST(DiskFiles, ARunsFileThatIsAFifoIsRefused) {
  Runs runs("fifo-run", "sft", "");
  ASSERT_NO_FATAL_FAILURE(runs.finish("whole"));
  const std::string run = runs.directory("whole");
  for (const std::string file : {"metrics.jsonl", "summary.json", "trace.json", "config.resolved.yaml"}) {
    fs::rename(run + "/" + file, run + "/kept");
    ASSERT_EQ(::mkfifo((run + "/" + file).c_str(), 0600), 0);
    const host::CommandResult result = run_collimate({"report", run});
    EXPECT_FALSE(result.timed_out) << file;
    EXPECT_THAT(result.errors, testing::HasSubstr(file + "] expected a regular file, got a pipe")) << file;
    fs::remove(run + "/" + file);
    fs::rename(run + "/kept", run + "/" + file);
  }
}

// Resuming records anew where the recording is no file that it can go on with.
TEST(DiskFiles, ARecordingThatIsAFifoIsRefused) {
  Runs runs("fifo-events", "sft", "");
  ASSERT_NO_FATAL_FAILURE(runs.finish("whole"));
  const std::string events = runs.directory("whole") + "/events.jsonl";
  fs::remove(events);
  ASSERT_EQ(::mkfifo(events.c_str(), 0600), 0);
  const host::CommandResult result = runs.train("whole", {"--set", "run.iterations=12"}, {});
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.status.code, 1) << result.errors;
  EXPECT_THAT(result.errors, testing::HasSubstr("events.jsonl"));
}

TEST(DiskFiles, AFileOfKeysThatIsAFifoIsRefused) {
  Runs runs("fifo-keys", "sft", "");
  ASSERT_NO_FATAL_FAILURE(runs.finish("whole"));
  const std::string keys = runs.scratch() / "keys";
  ASSERT_EQ(::mkfifo(keys.c_str(), 0600), 0);
  const host::CommandResult result =
      run_collimate({"serve", runs.directory("whole") + "/model", "--api-key-file", keys});
  EXPECT_EQ(result.status.code, 2) << result.status.description() << ": " << result.errors;
  EXPECT_THAT(result.errors, testing::HasSubstr("expected a regular file, got a pipe"));
}

TEST(DiskFiles, AConfigOrDataFileThatIsAFifoIsRefused) {
  const Scratch scratch("fifo-config");
  write_small_task(scratch.path());
  const std::string fifo = scratch / "fifo.yaml", rows = scratch / "fifo.jsonl", config = scratch / "run.yaml";
  for (const std::string& path : {fifo, rows}) ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  write_text(config, small_config("sft", scratch.path()));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"check", fifo}, {"check", config, "--set", "data.train=" + rows}}) {
    const host::CommandResult result = run_collimate(words);
    EXPECT_EQ(result.status.code, 2) << result.status.description() << ": " << result.errors;
    EXPECT_NE(result.errors.find("expected a regular file, got a pipe or device"), std::string::npos) << result.errors;
  }
}

}  // namespace
}  // namespace collimate::test
