#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collimate/host/atomic_file.h"

namespace collimate::flow {

// A Retention says which checkpoints of a run are kept.
struct Retention {
  int64_t newest = 2;  // how many of the newest are kept, at least one
  // Returns how good the state after so many iterations is, the higher the better, or nothing where that was not
  // measured. The best checkpoint is kept beside the newest ones. Without this function there is no best one.
  std::function<std::optional<double>(int64_t step)> value = {};
};

// Checkpoints manages the checkpoints of one run: DIR/checkpoints/step-000050. The run waits while a checkpoint's
// contents are written. Then it goes on, while a thread brings them to the disk: it fsyncs the files, renames the
// directory and removes checkpoints that are no longer kept. A crash meanwhile leaves the earlier checkpoints complete.
// Only one thread may use it.
class Checkpoints {
 public:
  explicit Checkpoints(std::string run_directory, Retention keep = {});

  // Returns a fresh temporary directory for the state after `step` iterations and removes leftovers of a killed run.
  // Without `commit`, or when writing fails, the directory is removed again. Settles the checkpoint before.
  std::string begin(int64_t step);
  // Lists what the checkpoint holds and begins to bring it to the disk. Returns the path that it will have.
  std::string commit();
  // Waits until the committed checkpoint is on the disk under its name. Throws what prevented that.
  void settle();
  // Does what settle() does if the thread has ended, and nothing otherwise.
  void poll();

  // Returns the paths of complete checkpoints, oldest first.
  std::vector<std::string> list() const;
  // Returns the newest complete checkpoint, or "".
  std::string latest() const;
  // Returns the best complete checkpoint, the earliest of equal ones, or "" where no value of any is known.
  std::string best() const;
  // Removes the checkpoints of more iterations than `step`.
  void remove_after(int64_t step) const;

 private:
  // Returns the checkpoints that are removed when the next one is there.
  std::vector<std::string> outdated_by(const std::string& next) const;

  std::string directory_;
  Retention keep_;
  std::unique_ptr<host::AtomicDirectory> building_;
  std::future<void> committing_;  // its destructor waits
};

}  // namespace collimate::flow
