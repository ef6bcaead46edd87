#include "collimate/plan/calibrate/calibrate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "collimate/base/error.h"
#include "collimate/plan/calibrate/least_squares.h"

namespace collimate::plan {
namespace {

using C = Constants;

// An Unknown is a constant that the fit moves. Predictions are linear in it or, where it is a share of a speed, in its
// inverse. The fit solves for that in units of its starting value.
struct Unknown {
  double C::*member;
  bool share;
  double pull;  // weight of the squared change in units of the start, against the squared relative error
};

constexpr double kWeak = 1e-8;  // decides only where nothing else does
constexpr std::array kUnknowns = {
    Unknown{&C::train_efficiency, true, kWeak}, Unknown{&C::score_efficiency, true, kWeak},
    Unknown{&C::decode_layer_seconds, false, kWeak}, Unknown{&C::decode_step_seconds, false, kWeak},
    Unknown{&C::decode_row_seconds, false, kWeak}, Unknown{&C::update_seconds, false, kWeak},
    Unknown{&C::phase_seconds, false, kWeak},
    // Where memory bounds no decoding, its efficiency shows in a little of the optimizer's step only.
    Unknown{&C::memory_efficiency, true, 1e-3}};

constexpr double kUnitOfNothing = 1e-4;  // seconds: the unit of a constant that starts at 0
constexpr double kLeastEffect = 1e-6;    // of a unit on a ratio, above which an unknown counts as found
constexpr int kMostLinearSteps = 50;

// Fit poses the observations as a problem in the unknowns.
class Fit {
 public:
  Fit(const std::vector<Observation>& observations, const Constants& start)
      : observations_(observations), start_(start) {
    double all = 0;
    for (const Observation& o : observations) all += o.seconds;
    for (const Observation& o : observations)
      weights_.push_back(0.5 / static_cast<double>(observations.size()) + 0.5 * o.seconds / all);
    for (const Unknown& unknown : kUnknowns) {
      const ConstantInfo& info = constant_info(unknown.member);
      const double value = start.*unknown.member;
      units_.push_back(value > 0 ? (unknown.share ? 1 / value : value) : kUnitOfNothing);
      low_.push_back((unknown.share ? 1 / info.high : info.low) / units_.back());
      high_.push_back((unknown.share ? 1 / info.low : info.high) / units_.back());
      origin_.push_back(value > 0 ? 1 : 0);
    }
  }

  const std::vector<double>& origin() const { return origin_; }

  // Pins shares that have reached their highest value to their start, and returns whether there were any. At its
  // highest a share says that the time which it divides is nothing: the runs do not show that time beside their others,
  // and a plan that is made with the share would not count it at all.
  bool pin_vanished_shares(const std::vector<double>& x) {
    bool pinned = false;
    for (size_t j = 0; j < x.size(); ++j) {
      if (!kUnknowns[j].share || low_[j] == high_[j] || x[j] > low_[j] * (1 + 1e-9)) continue;
      low_[j] = high_[j] = origin_[j];
      pinned = true;
    }
    return pinned;
  }
  bool is_pinned(size_t unknown) const { return low_[unknown] == high_[unknown]; }

  Constants constants(const std::vector<double>& x) const {
    Constants c = start_;
    for (size_t j = 0; j < x.size(); ++j) {
      const double value = x[j] * units_[j];
      c.*kUnknowns[j].member = kUnknowns[j].share ? 1 / value : value;
    }
    return c;
  }

  // Returns the predicted over the measured seconds, by observation.
  std::vector<double> ratios(const std::vector<double>& x) const {
    const Constants c = constants(x);
    std::vector<double> found;
    for (const Observation& o : observations_) found.push_back(phase_time(o.job, o.how, c).total() / o.seconds);
    return found;
  }

  double error(const std::vector<double>& x) const {
    const std::vector<double> found = ratios(x);
    double sum = 0;
    for (size_t i = 0; i < found.size(); ++i) sum += weights_[i] * std::pow(found[i] - 1, 2);
    for (size_t j = 0; j < x.size(); ++j) sum += kUnknowns[j].pull * std::pow(x[j] - origin_[j], 2);
    return sum;
  }

  // Returns, by unknown and observation, what a unit of the unknown adds to the ratio. `here` are the ratios at x.
  std::vector<std::vector<double>> slopes(const std::vector<double>& x, const std::vector<double>& here) const {
    std::vector<std::vector<double>> all;
    for (size_t j = 0; j < x.size(); ++j) {
      std::vector<double> moved = x;
      const double by = 1e-3 * std::max(x[j], 1e-2);
      moved[j] += by;
      all.push_back(ratios(moved));
      for (size_t i = 0; i < here.size(); ++i) all[j][i] = (all[j][i] - here[i]) / by;
    }
    return all;
  }

  // Returns the x that would be best if the slopes at x held everywhere.
  std::vector<double> linear_best(const std::vector<double>& x) const {
    const std::vector<double> here = ratios(x);
    const auto slope = slopes(x, here);
    const size_t n = x.size();
    BoundedQuadratic p{std::vector(n, std::vector<double>(n)), std::vector<double>(n), low_, high_};
    for (size_t j = 0; j < n; ++j) {
      p.curvature[j][j] = kUnknowns[j].pull;
      p.gradient[j] = kUnknowns[j].pull * origin_[j];
    }
    for (size_t i = 0; i < here.size(); ++i) {
      double wanted = 1 - here[i];
      for (size_t j = 0; j < n; ++j) wanted += slope[j][i] * x[j];
      for (size_t j = 0; j < n; ++j) {
        p.gradient[j] += weights_[i] * slope[j][i] * wanted;
        for (size_t k = 0; k < n; ++k) p.curvature[j][k] += weights_[i] * slope[j][i] * slope[k][i];
      }
    }
    return solve(p);
  }

 private:
  const std::vector<Observation>& observations_;
  Constants start_;
  std::vector<double> weights_, units_, low_, high_, origin_;
};

// Goes again and again towards the best x of the linear problem, as far as that lowers the error, until it does not.
std::vector<double> fit_unknowns(const Fit& fit) {
  std::vector<double> x = fit.origin();
  double error = fit.error(x);
  for (int step = 0; step < kMostLinearSteps; ++step) {
    const std::vector<double> best = fit.linear_best(x), from = x;
    const double before = error;
    for (double share = 1; share > 1e-4 && error == before; share /= 2) {
      std::vector<double> tried = from;
      for (size_t j = 0; j < x.size(); ++j) tried[j] += share * (best[j] - from[j]);
      if (const double now = fit.error(tried); now < before) {
        error = now;
        x = tried;
      }
    }
    if (error >= before * (1 - 1e-9)) return x;
  }
  return x;
}

void check_measured(const std::vector<Observation>& observations) {
  if (observations.empty())
    throw base::InputError(base::expectation("calibrate", "at least one measured function", "none"));
  for (const Observation& o : observations)
    if (!(o.seconds > 0) || !std::isfinite(o.seconds))
      throw base::InputError(base::expectation(fmt::format("calibrate {} in run '{}'", o.function, o.run),
                                               "a time above 0", fmt::format("{} s", o.seconds)));
}

// Returns the seconds of one row by least squares over the calls, whose seconds are proportional to their rows.
double host_row_seconds(const std::vector<HostObservation>& hosts) {
  double product = 0, square = 0;
  for (const HostObservation& o : hosts) {
    product += o.rows * o.seconds;
    square += o.rows * o.rows;
  }
  return square > 0 ? product / square : 0;
}

}  // namespace

Calibration calibrate(const std::vector<Observation>& observations, const std::vector<HostObservation>& hosts,
                      const Constants& start) {
  check_measured(observations);
  Constants from = start;
  from.layer_seconds = 0;
  Fit fit(observations, from);
  std::vector<double> x = fit_unknowns(fit);
  while (fit.pin_vanished_shares(x)) x = fit_unknowns(fit);
  Calibration made{fit.constants(x), {}, fit.ratios(x)};
  for (size_t i = 0; i < observations.size(); ++i) made.fitted_seconds[i] *= observations[i].seconds;
  const auto slopes = fit.slopes(x, fit.ratios(x));
  std::vector<double C::*> found = {&C::layer_seconds};
  for (size_t j = 0; j < x.size(); ++j)
    if (!fit.is_pinned(j) && *std::max_element(slopes[j].begin(), slopes[j].end()) > kLeastEffect)
      found.push_back(kUnknowns[j].member);
  if (!hosts.empty()) {
    made.constants.host_row_seconds = host_row_seconds(hosts);
    found.push_back(&C::host_row_seconds);
  }
  for (const ConstantInfo& info : constant_table())
    if (std::find(found.begin(), found.end(), info.member) != found.end()) made.found.push_back(&info);
  return made;
}

}  // namespace collimate::plan
