#pragma once

#include <array>
#include <vector>

#include "collimate/plan/search/clock.h"

namespace collimate::plan {

inline constexpr size_t kMostCells = 32;

// A ClockRun runs a few iterations of a Clock's tasks. Only Clock uses it.
class ClockRun {
 public:
  // With `at_best`, early tasks lose nothing by calls of a few rows.
  ClockRun(const Clock& clock, const Times& times, const std::vector<double>& transfers, size_t iterations,
           bool at_best = false);

  void run();
  double complete(size_t iteration) const { return complete_[iteration]; }
  double last() const { return last_; }

 private:
  struct Move {
    bool pending = false;
    double asked = 0;       // when the training ended
    double reader_end = 0;  // of the latest task of the destination
  };

  double free_at(uint32_t cells) const;
  double move_at(size_t transfer) const;
  void occupy(uint32_t cells, double until);
  bool in_turn(size_t iteration, const Clock::Task& task) const;
  double begin_of(size_t iteration, size_t task) const;
  double after_moves(const Clock::Task& task, double begin) const;
  bool before_move(size_t transfer, const Clock::Task& task, double begin) const;
  void step();
  void move(size_t transfer);
  void start(size_t iteration, size_t task, double begin);
  double end_of(size_t iteration, size_t task, double begin);
  void note_training(const Clock::Task& task, double end);

  const Clock& clock_;
  const Times& times_;
  const std::vector<double>& transfer_seconds_;
  bool at_best_;
  size_t iterations_, count_;
  size_t first_ = 0;  // iterations before it are complete
  double last_ = 0;
  std::array<double, kMostCells> free_ = {};
  std::array<size_t, kMostCells> heads_ = {};  // number of tasks begun, by cell
  std::vector<double> ends_;                   // by iteration and task; negative: not begun
  std::vector<Finish> out_;                    // by iteration and task that gives rows out before its end
  std::vector<size_t> left_;                   // by iteration, tasks not begun
  std::vector<double> complete_;               // by iteration
  std::vector<Move> moves_;
};

}  // namespace collimate::plan
