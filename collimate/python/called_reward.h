#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/rlhf/reward/reward.h"

namespace collimate::python {

// A function of the caller's process that judges samples: it answers a request, both as JSON text in the form of
// rlhf/reward/python_answer.h. Called on a worker's thread.
struct CalledFunction {
  std::string name;                   // by which a config names it, {function: NAME}
  std::vector<std::string> reserved;  // columns of the data that it cannot be given
  bool together = false;              // it is called with several samples, and gives a list
  std::function<std::string(const std::string& request)> answer;
  std::function<void()> interrupt;  // makes the calls that go on in Python's code raise KeyboardInterrupt
};

// Configs may name these rewards while this lives. InputError when a name is taken.
class CalledRewards : private base::Immovable {
 public:
  explicit CalledRewards(const std::vector<CalledFunction>& functions);
  ~CalledRewards();  // also after a name that is taken

 private:
  CalledRewards() = default;

  std::vector<std::string> names_;
};

}  // namespace collimate::python
