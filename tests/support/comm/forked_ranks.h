#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/base/read_file.h"
#include "collimate/comm/group.h"

namespace collimate::comm {

// Ranks of the back end "shm" that are children of this process. To be made while it has one thread.
class ForkedRanks : private base::Immovable {
 public:
  // Each child says what body(group) returns, or what it throws.
  ForkedRanks(int size, const std::string& name, const std::function<std::string(Group&)>& body,
              double deadline_seconds = 20.0);
  ~ForkedRanks();

  // Returns when every rank has joined its group.
  void wait_joined();
  void kill(int rank, int signal = SIGKILL);
  // Returns what a rank said until its end; "" of one that was killed.
  std::string said(int rank);

 private:
  struct Child {
    int process = 0;
    base::FileDescriptor words;  // what it writes: a byte when it has joined, then what it says
  };
  [[noreturn]] static void be_rank(const GroupPlace& place, int words, const std::function<std::string(Group&)>& body);

  std::unique_ptr<GroupStore> store_;
  std::vector<Child> children_;
};

// Runs body(group) in `size` processes; gives what each said.
std::vector<std::string> run_forked(int size, const std::string& name, const std::function<std::string(Group&)>& body,
                                    double deadline_seconds = 20.0);

}  // namespace collimate::comm
