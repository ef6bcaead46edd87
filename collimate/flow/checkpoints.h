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

// Which checkpoints of a run stay.
struct Retention {
  int64_t newest = 2;  // so many of them, at least one
  // How good the state after so many iterations is, the higher the better; nothing where that was not measured. The
  // best one is kept beside the newest ones; without it there is none.
  std::function<std::optional<double>(int64_t step)> value = {};
};

// The checkpoints of one run: DIR/checkpoints/step-000050. What a checkpoint holds is written while the run waits. Then
// the run goes on, while a thread brings it to the disk: fsyncs its files, renames its directory and removes what is no
// longer kept. A crash meanwhile leaves the checkpoints before it complete. Used by one thread.
class Checkpoints {
 public:
  explicit Checkpoints(std::string run_directory, Retention keep = {});

  // A fresh temporary directory for the state after `step` iterations; leftovers of a killed run are removed. Without
  // `commit`, or when writing fails, it is removed again. Settles the one before.
  std::string begin(int64_t step);
  // Lists what it holds and begins to bring it to the disk. Returns the path that it will have.
  std::string commit();
  // Waits until what was committed is on the disk, under its name; throws why it is not.
  void settle();
  // Does what settle() does where the writing has ended; else nothing.
  void poll();

  // Complete checkpoints, oldest first, as paths.
  std::vector<std::string> list() const;
  // Returns the newest complete checkpoint, or "".
  std::string latest() const;
  // Returns the best complete one, of equal ones the earliest; "" where no value of any is known.
  std::string best() const;
  // Removes those of more iterations than `step`.
  void remove_after(int64_t step) const;

 private:
  // The checkpoints that go when the next one is there.
  std::vector<std::string> outdated_by(const std::string& next) const;

  std::string directory_;
  Retention keep_;
  std::unique_ptr<host::AtomicDirectory> building_;
  std::future<void> committing_;  // its destructor waits
};

}  // namespace collimate::flow
