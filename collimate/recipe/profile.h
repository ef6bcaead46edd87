#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collimate/flow/executor.h"

namespace collimate::recipe {

// A Profile says where an iteration's time went, by function and operation: of the slowest iteration of a run.
class Profile {
 public:
  void add(const flow::CallTimes& times);
  void end_iteration(int64_t iteration, double seconds);
  bool empty() const { return iterations_ == 0; }
  // A table for a person: functions with their operations, slowest first. A function's own seconds are those that no
  // operation took; of an operation, those of no operation that it called.
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
    std::vector<std::pair<double, double>> busy;                // when a function ran, on whatever worker
  };

  static double idle_seconds(const Iteration& iteration);  // when none ran

  std::map<int64_t, Iteration> running_;  // by number
  Iteration slowest_;
  int64_t iterations_ = 0;
};

}  // namespace collimate::recipe
