#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collimate::plan {

// Mean and mean square of a number of tokens: linear layers cost by the one, attention by the other.
struct Moments {
  double mean = 0, square = 0;
};

// How many tokens a prompt or completion has: all one length, log-normal with a cap, or a histogram.
class Lengths {
 public:
  static Lengths fixed(double tokens);
  // A log-normal of this median and spread (of the logarithm); what is longer stops at the cap.
  static Lengths log_normal(double median, double sigma, double cap);
  // Makes it from its mean after the cap, which must lie below it; the median is found by bisection.
  static Lengths capped_mean(double mean, double sigma, double cap);
  // (tokens, weight) pairs.
  static Lengths histogram(std::vector<std::pair<double, double>> bars);
  // `512`, `lognormal:MEDIAN,SIGMA,CAP`, `mean:MEAN,SIGMA,CAP` or `histogram:TOKENS=WEIGHT,…`. InputError naming
  // `where`.
  static Lengths parse(const std::string& text, const std::string& where);

  double mean() const { return mean_; }
  double mean_square() const { return mean_square_; }
  Moments moments() const { return {mean_, mean_square_}; }
  double largest() const;
  // The length below which a share of the rows lies; share in [0, 1].
  double quantile(double share) const;
  // `count` representative lengths, ascending: the middles of equal shares.
  std::vector<double> sample(int count) const;
  bool constant() const { return bars_.size() == 1; }

 private:
  explicit Lengths(std::vector<std::pair<double, double>> bars);
  std::vector<std::pair<double, double>> bars_;  // ascending; weights add up to 1
  double mean_ = 0, mean_square_ = 0;
};

}  // namespace collimate::plan
