#include "collimate/plan/inputs/lengths.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"

namespace collimate::plan {
namespace {

constexpr int kBars = 256;
constexpr double kUsualMean = 400, kUsualSpread = 0.8;

// Returns the inverse of the standard normal distribution, by bisection of its error function.
double normal_quantile(double share) {
  double low = -9, high = 9;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < share ? low : high) = middle;
  }
  return low;
}

std::vector<std::string> fields(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Returns the size, without sign, of the number with which parts[at] begins; `otherwise` where there is none.
double size_in(const std::vector<std::string>& parts, size_t at, double otherwise) {
  const double value = at < parts.size() ? std::abs(std::strtod(parts[at].c_str(), nullptr)) : 0;
  return std::isfinite(value) && value > 0 ? value : otherwise;
}

// Guesses what was meant by a text that is no distribution: the nearest kind with its numbers, and usual ones for the
// rest.
std::string nearest_lengths(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    const double tokens = size_in({text}, 0, 0);
    return tokens > 0 ? fmt::format("{}", tokens) : "512";
  }
  const std::string kind = base::closest(text.substr(0, colon), {"mean", "lognormal", "histogram"});
  if (kind == "histogram") return "histogram:256=1,1024=2";
  const std::vector<std::string> parts = fields(text.substr(colon + 1));
  const double first = size_in(parts, 0, kUsualMean), cap = size_in(parts, 2, 4 * first);
  return fmt::format("{}:{},{},{}", kind, first, size_in(parts, 1, kUsualSpread),
                     kind == "mean" && cap <= first ? 2 * first : cap);
}

[[noreturn]] void fail(const std::string& where, const std::string& text) {
  throw base::InputError(
      base::expectation(where, "tokens, lognormal:MEDIAN,SIGMA,CAP, mean:MEAN,SIGMA,CAP or histogram:TOKENS=WEIGHT,…",
                        "'" + text + "'", nearest_lengths(text)));
}

double positive(const std::string& text, const std::string& where, const std::string& whole) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value <= 0) fail(where, whole);
  return value;
}

Lengths parse_histogram(const std::string& body, const std::string& where, const std::string& whole) {
  std::vector<std::pair<double, double>> bars;
  for (const std::string& part : fields(body)) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos) fail(where, whole);
    bars.emplace_back(positive(part.substr(0, equals), where, whole), positive(part.substr(equals + 1), where, whole));
  }
  return Lengths::histogram(std::move(bars));
}

}  // namespace

Lengths::Lengths(std::vector<std::pair<double, double>> bars) : bars_(std::move(bars)) {
  std::sort(bars_.begin(), bars_.end());
  double total = 0;
  for (const auto& [tokens, weight] : bars_) total += weight;
  COLLIMATE_CHECK(total > 0, "a distribution without weight");
  for (auto& [tokens, weight] : bars_) {
    weight /= total;
    mean_ += tokens * weight;
    mean_square_ += tokens * tokens * weight;
  }
}

Lengths Lengths::fixed(double tokens) { return Lengths({{tokens, 1.0}}); }

Lengths Lengths::log_normal(double median, double sigma, double cap) {
  std::vector<std::pair<double, double>> bars;
  for (int i = 0; i < kBars; ++i) {
    const double tokens = median * std::exp(sigma * normal_quantile((i + 0.5) / kBars));
    bars.emplace_back(std::min(std::max(tokens, 1.0), cap), 1.0);
  }
  return Lengths(std::move(bars));
}

Lengths Lengths::capped_mean(double mean, double sigma, double cap) {
  if (mean >= cap * 0.999) return fixed(cap);
  double low = 1e-3, high = cap * std::exp(6 * sigma + 1);
  for (int i = 0; i < 40; ++i) {
    const double middle = std::sqrt(low * high);
    (log_normal(middle, sigma, cap).mean() < mean ? low : high) = middle;
  }
  return log_normal(low, sigma, cap);
}

Lengths Lengths::histogram(std::vector<std::pair<double, double>> bars) { return Lengths(std::move(bars)); }

Lengths Lengths::parse(const std::string& text, const std::string& where) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return fixed(positive(text, where, text));
  const std::string kind = text.substr(0, colon), body = text.substr(colon + 1);
  if (kind == "histogram") return parse_histogram(body, where, text);
  const std::vector<std::string> parts = fields(body);
  if ((kind != "lognormal" && kind != "mean") || parts.size() != 3) fail(where, text);
  const double first = positive(parts[0], where, text), sigma = positive(parts[1], where, text);
  const double cap = positive(parts[2], where, text);
  if (kind == "mean" && first >= cap) fail(where, text);
  return kind == "mean" ? capped_mean(first, sigma, cap) : log_normal(first, sigma, cap);
}

double Lengths::largest() const { return bars_.back().first; }

double Lengths::quantile(double share) const {
  double below = 0;
  for (const auto& [tokens, weight] : bars_) {
    below += weight;
    if (share <= below) return tokens;
  }
  return largest();
}

std::vector<double> Lengths::sample(int count) const {
  std::vector<double> lengths;
  for (int i = 0; i < count; ++i) lengths.push_back(quantile((i + 0.5) / count));
  return lengths;
}

}  // namespace collimate::plan
