#pragma once

#include <string>
#include <vector>

namespace collimate::comm {

struct Axis {
  std::string name;  // "dp", "tp", "pp", "cp", "ep"
  int size = 1;
  bool operator==(const Axis&) const = default;
};

// Ranks with ordered named axes, the last one fastest (row major). A value; all methods are pure. An axis that is not
// there has size 1 and coordinate 0, so code asks for "tp" without asking whether there is one.
class Mesh {
 public:
  // One rank, no axes.
  Mesh();
  // Ranks 0 … product - 1. InputError: a size below 1, a repeated name.
  explicit Mesh(std::vector<Axis> axes);
  // `ranks` in row-major order of `axes`; their number must be the product.
  Mesh(std::vector<Axis> axes, std::vector<int> ranks);

  int size() const { return static_cast<int>(ranks_.size()); }
  int size(const std::string& axis) const;
  const std::vector<Axis>& axes() const { return axes_; }
  const std::vector<int>& ranks() const { return ranks_; }
  // Returns where `rank` stands on the axis. InputError when the rank is not in the mesh.
  int coordinate(int rank, const std::string& axis) const;
  // The ranks that differ from `rank` on this axis only, in order of the axis: the members of its group.
  std::vector<int> line(int rank, const std::string& axis) const;

  // Adjacent axes replaced by one of their product.
  Mesh flatten(const std::vector<std::string>& axes, const std::string& name) const;

 private:
  int place(int rank) const;
  int stride(int axis) const;
  int find(const std::string& axis) const;  // index or -1

  std::vector<Axis> axes_;
  std::vector<int> ranks_;
};

}  // namespace collimate::comm
