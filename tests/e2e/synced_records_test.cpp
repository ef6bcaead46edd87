#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/run_support.h"
#include "tests/support/host/noted_syncs.h"

namespace collimate::test {
namespace {

// A file that was told to reach the disk: how many lines it had, and how many checkpoints stood beside it.
struct Synced {
  std::string name;
  size_t lines = 0;
  size_t checkpoints = 0;
};

size_t complete_checkpoints(const fs::path& directory) {
  std::error_code none;
  const fs::directory_iterator entries(directory / "checkpoints", none);
  return static_cast<size_t>(std::count_if(fs::begin(entries), fs::end(entries), [](const auto& entry) {
    return entry.path().filename().string().find(".partial") == std::string::npos;
  }));
}

// The machine may stop right after a checkpoint has got its name, or after summary.json has said that the run is done:
// what it goes on after, and what is done, is on the disk by then.
TEST(SyncedRecords, LinesBeforeACheckpointAreOnTheDiskBeforeIt) {
  const Scratch scratch("synced-records");
  write_small_task(scratch.path());
  const fs::path output = fs::canonical(scratch.path()) / "run";  // as /proc names it
  std::vector<Synced> records;
  std::set<std::string> paths, before_summary;
  bool folder_is_named = false;  // on the disk, before the first checkpoint is in it
  {
    const NotedSyncs noted([&](const fs::path& path, bool data) {
      if (path == output && fs::exists(output / "checkpoints") && complete_checkpoints(output) == 0)
        folder_is_named = true;
      if (path == output / "summary.json.partial") before_summary = paths;
      if (!data)
        paths.insert(path);
      else if (path.parent_path() == output)
        records.push_back({path.filename(), lines_of(path).size(), complete_checkpoints(output)});
    });
    train_text(small_config("sft", scratch.path()), output, {"run.save_every=1", "run.keep_checkpoints=5"});
  }
  for (const fs::path& path :
       {output.parent_path(), output, output / "checkpoints", output / "model/tokenizer.json.partial",
        output / "model/model.safetensors.partial", output / "model", output / "trace.json.partial"})
    EXPECT_TRUE(before_summary.contains(path)) << path;
  EXPECT_TRUE(folder_is_named);
  ASSERT_EQ(complete_checkpoints(output), 3U);
  for (size_t step = 1; step <= 3; ++step) {
    // Syncs of the file ahead of that checkpoint, each with more lines than the one before. The next one's may be among
    // them, as a checkpoint gets its name behind the run.
    const auto before_checkpoint = [&](const std::string& name) {
      std::vector<size_t> lines;
      for (const Synced& file : records)
        if (file.name == name && file.checkpoints < step && (lines.empty() || file.lines > lines.back()))
          lines.push_back(file.lines);
      return lines;
    };
    EXPECT_GE(before_checkpoint("metrics.jsonl").size(), step);
    EXPECT_GE(before_checkpoint("metrics.jsonl").back(), step);
    EXPECT_GE(before_checkpoint("events.jsonl").size(), step);
  }
}

// Where the machine stops while files of an old checkpoint go, its name is gone from the disk already.
TEST(SyncedRecords, AnOldCheckpointLosesItsNameOnTheDiskBeforeItsFiles) {
  const Scratch scratch("synced-removal");
  write_small_task(scratch.path());
  const fs::path output = fs::canonical(scratch.path()) / "run";
  std::set<std::string> removed;  // whole when the folder of checkpoints was synced
  {
    const NotedSyncs noted([&](const fs::path& path, bool) {
      if (path != output / "checkpoints") return;
      for (const auto& entry : fs::directory_iterator(path))
        if (entry.path().extension() == ".removed" && fs::exists(entry.path() / "checkpoint.json"))
          removed.insert(entry.path().stem());
    });
    train_text(small_config("sft", scratch.path()), output, {"run.save_every=1", "run.keep_checkpoints=1"});
  }
  EXPECT_EQ(removed.size(), 2U);
}

}  // namespace
}  // namespace collimate::test
