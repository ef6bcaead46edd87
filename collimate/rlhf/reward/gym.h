#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/rlhf/reward/reward_section.h"

namespace collimate::rlhf {

// A GymTurn is a turn of the policy that its sample's environment answers.
struct GymTurn {
  int64_t episode = 0;  // which environment
  std::string completion;
  bool first = false;      // the environment begins; the members below are read then alone
  std::string prompt;      // the sample's
  nlohmann::json example;  // columns of its row of the data
};

struct GymReply {
  int64_t episode = 0;
  std::optional<std::string> observation;  // what the policy reads next; nothing where the episode is over
  double reward = 0;                       // of this step
  bool done = false;
  std::string error;  // why the step failed; "" where it did not
  std::string trace;  // of an exception of the user's code
};

// Environments of a Python class, one object a sample, in processes of their own (GymSection::workers). Steps of
// samples in one process follow each other; the caller goes on meanwhile. A step that raises or takes too long is its
// sample's failure. The process of a step that takes too long is killed, and with it the environments that live there:
// their next steps fail too. Not thread-safe.
class Gym : private base::Immovable {
 public:
  // Starts the processes. Throws what PythonProcess throws.
  explicit Gym(const GymSection& options);
  ~Gym();

  // Returns whether the class has a method reset, as Gymnasium's have: nothing calls it.
  bool has_reset() const;
  void step(GymTurn turn);
  // Ends environments whose samples go on no longer. Steps of these that have not begun are left out.
  void forget(const std::vector<int64_t>& episodes);
  // Returns the replies that have come. Where there are none, and steps have not been answered, it waits up to so many
  // seconds for the first.
  std::vector<GymReply> take(double seconds);
  int64_t pending() const;  // steps that take() has not answered yet

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace collimate::rlhf
