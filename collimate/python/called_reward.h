#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/rlhf/reward/reward.h"

namespace collimate::python {

// A function of the caller's process that judges samples. Requests and answers are JSON texts in the form of
// rlhf/reward/python_answer.h. The function is called on a worker's thread.
struct CalledFunction {
  std::string name;                   // by which a config names it, {function: NAME}
  std::vector<std::string> reserved;  // names of columns that it cannot be given
  bool together = false;              // it is called with several samples and returns a list
  std::function<std::string(const std::string& request)> answer;
  std::function<void()> interrupt;  // makes the calls that go on in Python's code raise KeyboardInterrupt
};

// Makes these functions known to configs as rewards as long as it lives. Throws InputError when a name is taken.
class CalledRewards : private base::Immovable {
 public:
  explicit CalledRewards(const std::vector<CalledFunction>& functions);
  ~CalledRewards();  // runs also if the constructor throws, as that delegates

 private:
  CalledRewards() = default;

  std::vector<std::string> names_;
};

}  // namespace collimate::python
