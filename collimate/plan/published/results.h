#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collimate/plan/published/predict.h"

namespace collimate::plan::published {

// A row with what the cost model says of it.
struct Result {
  std::string id, paper, system, metric, unit;
  double published = 0, published_high = 0;  // the same where the row gives one value
  double predicted = 0;
  double error = 0;            // predicted / published − 1; 0 inside a range
  bool may_fit = false;        // of the kind that constants are fitted to
  bool fitted = false;         // a row that the shipped constants were fitted to (fitted_rows.h)
  std::string nearest_fitted;  // id of such a row
  std::string reason;          // not empty: not modelled, and the numbers above mean nothing
  bool modelled() const { return reason.empty(); }
  bool timed() const { return metric == "time" || metric == "throughput"; }
};

using ConstantsOf = std::function<Constants(const std::string& backend)>;

// All rows in order.
std::vector<Result> evaluate(const std::vector<Row>& rows, const ConstantsOf& constants);
Result evaluate_row(const Row& row, const ConstantsOf& constants);

// Of the rows of one paper that were predicted.
struct Summary {
  std::string paper;
  int rows = 0, predicted = 0, fitted = 0;
  double median_error = 0;       // of |error|
  double median_not_fitted = 0;  // the same of rows that no constant was fitted to; 0 when there are none
  double rank_correlation = 0;   // among time rows of one unit, 0 where no unit has three
  int status_rows = 0, status_right = 0;
};
// By paper in order of first appearance; the last is of all rows, named "all".
std::vector<Summary> summarise(const std::vector<Result>& results);

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace collimate::plan::published
