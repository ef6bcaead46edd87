#pragma once

#include <vector>

#include "collimate/base/stateful.h"
#include "collimate/model/share.h"
#include "collimate/model/weights.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/away_file.h"
#include "collimate/tensor/exec.h"

namespace collimate::train {

// This exponential moving average of trained weights, in fp32, begins as the weights. Every optimizer step does
//   average += (1 - decay) · (weights - average)
// element by element, which is torch.lerp(weights, average, decay) for a decay of a half or more, as in DeepSpeed-Chat
// (moving_average of its step 3, decay 0.992). Each rank has the average of the master weights that it keeps, so that
// its bits are those of one device.
class MovingAverage {
 public:
  MovingAverage(model::Weights& weights, double decay, tensor::Exec exec);

  void update();  // after a step, when its master weights are known to all ranks
  // Exchanges average and master weights: called twice, the weights are as they were. No panels are made again, so that
  // nothing may run the model between the two calls.
  void swap();

  // offload() moves the average from the device to the file, restore() brings it back with the same bits.
  void offload(tensor::AwayFile& file);
  void restore(tensor::AwayFile& file);

  // Each of the ranks with the same weights saves its `shares` [segments], as Weights::save; all ranks load all.
  void save(base::StateWriter& out, std::span<const model::Share> shares) const;
  void load(base::StateReader& in);

 private:
  tensor::HostEdit values(int segment) const;

  model::Weights& weights_;
  float step_;  // 1 - decay
  tensor::Exec exec_;
  std::vector<tensor::Buffer> averages_;      // by segment; empty where nothing is trained
  std::vector<tensor::AwayFile::Slot> away_;  // by segment
};

// Puts the average in the place of the weights while it lives, so that the average can be written.
class AverageInPlace : private base::Immovable {
 public:
  explicit AverageInPlace(MovingAverage& average) : average_(average) { average_.swap(); }
  ~AverageInPlace() { average_.swap(); }

 private:
  MovingAverage& average_;
};

}  // namespace collimate::train
