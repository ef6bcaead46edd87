#include "collimate/plan/calibrate/least_squares.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

namespace collimate::plan {
namespace {

constexpr int kMostRounds = 10000;

// Solves for the numbers that are not fixed, by Gaussian elimination with partial pivoting; the others keep their x.
void solve_free(const BoundedQuadratic& p, const std::vector<bool>& fixed, std::vector<double>& x) {
  std::vector<size_t> free;
  for (size_t i = 0; i < x.size(); ++i)
    if (!fixed[i]) free.push_back(i);
  const size_t n = free.size();
  std::vector<std::vector<double>> rows(n, std::vector<double>(n + 1));
  for (size_t i = 0; i < n; ++i) {
    rows[i][n] = p.gradient[free[i]];
    for (size_t k = 0; k < x.size(); ++k)
      if (fixed[k]) rows[i][n] -= p.curvature[free[i]][k] * x[k];
    for (size_t j = 0; j < n; ++j) rows[i][j] = p.curvature[free[i]][free[j]];
  }
  for (size_t pivot = 0; pivot < n; ++pivot) {
    const auto larger = [pivot](const auto& a, const auto& b) { return std::abs(a[pivot]) < std::abs(b[pivot]); };
    const auto from = rows.begin() + static_cast<std::ptrdiff_t>(pivot);
    std::iter_swap(from, std::max_element(from, rows.end(), larger));
    for (size_t i = pivot + 1; i < n; ++i) {
      const double by = rows[i][pivot] / rows[pivot][pivot];
      for (size_t j = pivot; j <= n; ++j) rows[i][j] -= by * rows[pivot][j];
    }
  }
  for (size_t i = n; i-- > 0;) {
    double value = rows[i][n];
    for (size_t j = i + 1; j < n; ++j) value -= rows[i][j] * x[free[j]];
    x[free[i]] = value / rows[i][i];
  }
}

// Returns the index of the number that is farthest outside its bounds, if one is.
std::optional<size_t> worst(const BoundedQuadratic& p, const std::vector<double>& x) {
  std::optional<size_t> found;
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i)
    if (const double out = std::max(p.low[i] - x[i], x[i] - p.high[i]); out > most) {
      most = out;
      found = i;
    }
  return found;
}

// Moves every number to its best value between its bounds. Returns the largest relative change.
double relax(const BoundedQuadratic& p, std::vector<double>& x) {
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double residual = p.gradient[i];
    for (size_t k = 0; k < x.size(); ++k) residual -= p.curvature[i][k] * x[k];
    const double moved = std::clamp(x[i] + residual / p.curvature[i][i], p.low[i], p.high[i]);
    most = std::max(most, std::abs(moved - x[i]) / std::max(std::abs(moved), 1e-9));
    x[i] = moved;
  }
  return most;
}

}  // namespace

std::vector<double> solve(const BoundedQuadratic& problem) {
  std::vector<double> x(problem.gradient.size());
  std::vector<bool> fixed(x.size());
  solve_free(problem, fixed, x);
  for (std::optional<size_t> out = worst(problem, x); out; out = worst(problem, x)) {
    x[*out] = std::clamp(x[*out], problem.low[*out], problem.high[*out]);
    fixed[*out] = true;
    solve_free(problem, fixed, x);
  }
  for (int round = 0; round < kMostRounds && relax(problem, x) > 1e-12; ++round) {
  }
  return x;
}

}  // namespace collimate::plan
