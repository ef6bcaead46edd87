#include "collimate/base/ticks.h"

#include <cmath>

namespace collimate::base {

std::vector<double> ticks(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double lead = rough / power;
  const double step = power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
  std::vector<double> out;
  for (double index = std::ceil(low / step - 1e-9); index * step <= high + 1e-9 * step; ++index) {
    out.push_back(index == 0 ? 0 : index * step);
  }
  return out;
}

}  // namespace collimate::base
