#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collimate/flow/executor.h"

namespace collimate::recipe {

// Says where the time of a run's slowest iteration went, by function and operation.
class Profile {
 public:
  void add(const flow::CallTimes& times);
  void end_iteration(int64_t iteration, double seconds);
  bool empty() const { return iterations_ == 0; }
  // Returns a table for a person: functions with their operations, slowest first. A function's own seconds are those
  // outside of its operations, and an operation's own seconds those outside of operations that it called.
  std::string table() const;

 private:
  struct Time {
    int64_t calls = 0;
    double total_seconds = 0, self_seconds = 0;
  };
  struct Function {
    Time time;
    std::map<std::string, Time> operations;
  };
  struct Iteration {
    int64_t number = 0;
    double seconds = 0;
    std::map<std::pair<std::string, int>, Function> functions;  // by node and worker
    std::vector<std::pair<double, double>> busy;                // begin and end of each function call, on any worker
  };

  static double idle_seconds(const Iteration& iteration);  // during which no function ran

  std::map<int64_t, Iteration> running_;  // by number
  Iteration slowest_;
  int64_t iterations_ = 0;
};

}  // namespace collimate::recipe
