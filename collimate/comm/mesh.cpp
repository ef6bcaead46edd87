#include "collimate/comm/mesh.h"

#include <algorithm>
#include <set>
#include <span>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::comm {
namespace {

int product(const std::vector<Axis>& axes) {
  int total = 1;
  for (const Axis& axis : axes) total *= axis.size;
  return total;
}

std::string describe(const std::vector<Axis>& axes) {
  std::string text = "{";
  for (const Axis& axis : axes) text += fmt::format("{}{}: {}", text.size() > 1 ? ", " : "", axis.name, axis.size);
  return text + "}";
}

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(static_cast<size_t>(std::max(count, 0)));
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
  return ranks;
}

}  // namespace

Mesh::Mesh() : ranks_{0} {}

Mesh::Mesh(std::vector<Axis> axes) : Mesh(axes, first_ranks(product(axes))) {}

Mesh::Mesh(std::vector<Axis> axes, std::vector<int> ranks) : axes_(std::move(axes)), ranks_(std::move(ranks)) {
  std::set<std::string> names;
  for (const Axis& axis : axes_) {
    if (axis.size < 1) throw base::InputError(base::expectation("mesh", axis.name + " of at least 1", describe(axes_)));
    if (!names.insert(axis.name).second)
      throw base::InputError(base::expectation("mesh", "different axis names", describe(axes_)));
  }
  if (product(axes_) != size())
    throw base::InputError(base::expectation("mesh", fmt::format("{} ranks for {}", product(axes_), describe(axes_)),
                                             std::to_string(size())));
}

int Mesh::find(const std::string& axis) const {
  for (size_t i = 0; i < axes_.size(); ++i)
    if (axes_[i].name == axis) return static_cast<int>(i);
  return -1;
}

int Mesh::size(const std::string& axis) const {
  int index = find(axis);
  return index < 0 ? 1 : base::at(axes_, index).size;
}

int Mesh::stride(int axis) const {
  int stride = 1;
  for (const Axis& inner : std::span(axes_).subspan(static_cast<size_t>(axis) + 1)) stride *= inner.size;
  return stride;
}

int Mesh::place(int rank) const {
  auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  if (found == ranks_.end())
    throw base::InputError(base::expectation("mesh", "a rank of " + describe(axes_), std::to_string(rank)));
  return static_cast<int>(found - ranks_.begin());
}

int Mesh::coordinate(int rank, const std::string& axis) const {
  const int at = place(rank), index = find(axis);
  if (index < 0) return 0;
  return at / stride(index) % base::at(axes_, index).size;
}

std::vector<int> Mesh::line(int rank, const std::string& axis) const {
  const int at = place(rank), index = find(axis);
  if (index < 0) return {rank};
  const int step = stride(index), first = at - coordinate(rank, axis) * step;
  std::vector<int> line;
  for (int k = 0; k < base::at(axes_, index).size; ++k) line.push_back(base::at(ranks_, first + k * step));
  return line;
}

Mesh Mesh::flatten(const std::vector<std::string>& axes, const std::string& name) const {
  std::vector<Axis> result = axes_;
  int first = axes.empty() ? -1 : find(axes.front());
  bool adjacent = first >= 0 && static_cast<size_t>(first) + axes.size() <= axes_.size();
  int merged = 1;
  for (size_t i = 0; adjacent && i < axes.size(); ++i) {
    const Axis& axis = axes_[static_cast<size_t>(first) + i];
    adjacent = axis.name == axes[i];
    merged *= axis.size;
  }
  if (!adjacent)
    throw base::InputError(
        base::expectation("mesh", "adjacent axes of " + describe(axes_), fmt::format("{}", fmt::join(axes, ", "))));
  auto begin = result.begin() + first;
  result.erase(begin, begin + static_cast<std::ptrdiff_t>(axes.size()));
  result.insert(result.begin() + first, Axis{name, merged});
  return Mesh(std::move(result), ranks_);
}

}  // namespace collimate::comm
