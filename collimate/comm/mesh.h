#pragma once

#include <string>
#include <vector>

namespace collimate::comm {

struct Axis {
  std::string name;  // "dp", "tp", "pp", "cp", "ep"
  int size = 1;
  bool operator==(const Axis&) const = default;
};

// A Mesh gives ranks ordered named axes, the last one fastest (row major). It is a value, and all methods are pure. An
// absent axis has size 1 and coordinate 0, so code uses "tp" without checking that there is one.
class Mesh {
 public:
  // Makes a mesh of one rank without axes.
  Mesh();
  // Makes a mesh of ranks 0 … product - 1. Throws InputError for a size below 1 or a repeated name.
  explicit Mesh(std::vector<Axis> axes);
  // Takes `ranks` in row-major order of `axes`. Throws InputError as above, and when their number is not the product of
  // the sizes.
  Mesh(std::vector<Axis> axes, std::vector<int> ranks);

  int size() const { return static_cast<int>(ranks_.size()); }
  int size(const std::string& axis) const;
  const std::vector<Axis>& axes() const { return axes_; }
  const std::vector<int>& ranks() const { return ranks_; }
  // Returns where `rank` stands on the axis. Throws InputError when the rank is not in the mesh.
  int coordinate(int rank, const std::string& axis) const;
  // Returns the ranks that differ from `rank` on this axis only, in order of the axis: the members of its group.
  std::vector<int> line(int rank, const std::string& axis) const;

  // Returns the mesh with adjacent axes replaced by one axis of the product of their sizes. Throws InputError when they
  // are not adjacent.
  Mesh flatten(const std::vector<std::string>& axes, const std::string& name) const;

 private:
  int place(int rank) const;
  int stride(int axis) const;
  int find(const std::string& axis) const;  // index or -1

  std::vector<Axis> axes_;
  std::vector<int> ranks_;
};

}  // namespace collimate::comm
