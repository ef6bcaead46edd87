#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collimate::plan {

// Moments are the mean and the mean square of a number of tokens: linear layers cost by the mean, attention by the mean
// square.
struct Moments {
  double mean = 0, square = 0;
};

// Lengths say how many tokens a prompt or completion has: one length for all, log-normal with a cap, or a histogram.
class Lengths {
 public:
  static Lengths fixed(double tokens);
  // Makes a log-normal distribution of this median and spread (`sigma`, of the logarithm). Longer rows stop at the cap.
  static Lengths log_normal(double median, double sigma, double cap);
  // Makes a log-normal distribution from its mean after the cap, which must lie below the cap; the median is found by
  // bisection.
  static Lengths capped_mean(double mean, double sigma, double cap);
  // Makes a histogram of (tokens, weight) pairs.
  static Lengths histogram(std::vector<std::pair<double, double>> bars);
  // Reads `512`, `lognormal:MEDIAN,SIGMA,CAP`, `mean:MEAN,SIGMA,CAP` or `histogram:TOKENS=WEIGHT,…`. Throws
  // InputError naming `where`.
  static Lengths parse(const std::string& text, const std::string& where);

  double mean() const { return mean_; }
  double mean_square() const { return mean_square_; }
  Moments moments() const { return {mean_, mean_square_}; }
  double largest() const;
  // Returns the length up to which a share of the rows lies; `share` is in [0, 1].
  double quantile(double share) const;
  // Returns `count` representative lengths, ascending: the middles of equal shares.
  std::vector<double> sample(int count) const;
  bool constant() const { return bars_.size() == 1; }

 private:
  explicit Lengths(std::vector<std::pair<double, double>> bars);
  std::vector<std::pair<double, double>> bars_;  // ascending; weights add up to 1
  double mean_ = 0, mean_square_ = 0;
};

}  // namespace collimate::plan
