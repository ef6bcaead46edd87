#include "collimate/plan/inputs/workload.h"

#include <cmath>
#include <cstdlib>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"

namespace collimate::plan {
namespace {

std::string algorithm_of(const std::string& name) {
  if (name == "ppo" || name == "grpo") return name;
  const std::string near = base::nearest(name, {"ppo", "grpo"});
  throw base::InputError(
      base::expectation("workload", "ppo or grpo", "'" + name + "'", near.empty() ? "" : "'" + near + "'"));
}

double rows_of(const std::string& text) {
  char* end = nullptr;
  const double rows = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || rows < 1 || rows > 1e9 || rows != std::floor(rows))
    throw base::InputError(base::expectation("workload", "a whole number of rows per iteration", "'" + text + "'"));
  return rows;
}

}  // namespace

Workload parse_workload(const std::string& text) {
  const size_t first = text.find(','), second = first == std::string::npos ? first : text.find(',', first + 1);
  const size_t by = second == std::string::npos ? second : text.find('x', second);
  if (by == std::string::npos)
    throw base::InputError(
        base::expectation("workload", "ALGORITHM,ROWS,PROMPTxCOMPLETION", "'" + text + "'", "ppo,1024,1024x1024"));
  Workload workload;
  workload.algorithm = algorithm_of(text.substr(0, first));
  workload.rows = rows_of(text.substr(first + 1, second - first - 1));
  workload.prompt = Lengths::parse(text.substr(second + 1, by - second - 1), "workload prompt");
  workload.completion = Lengths::parse(text.substr(by + 1), "workload completion");
  return workload;
}

}  // namespace collimate::plan
