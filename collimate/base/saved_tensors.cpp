#include "collimate/base/saved_tensors.h"

#include <algorithm>
#include <cstring>

#include "collimate/base/error.h"

namespace collimate::base {
namespace {

std::string sizes_of(const TensorPart& part) { return fmt::format("{} × {} values", part.rows, part.columns); }

std::string described(const Box& box) {
  return fmt::format("rows {} to {} in columns {} to {}", box.row, box.row + box.rows, box.column,
                     box.column + box.columns);
}

// Returns the index of the first float of `box`, which lies inside the part, among the floats of the part.
int64_t place_of(const Box& box, const TensorPart& part) {
  return (box.row - part.box.row) * part.box.columns + box.column - part.box.column;
}

// Goes through a box that lies in two parts and calls act(index in one, index in the other, number of floats) for each
// contiguous run.
template <class Act>
void each_run(const Box& box, const TensorPart& one, const TensorPart& other, Act act) {
  const int64_t from = place_of(box, one), to = place_of(box, other);
  if (box.columns == one.box.columns && box.columns == other.box.columns) return act(from, to, box.count());
  for (int64_t r = 0; r < box.rows; ++r) act(from + r * one.box.columns, to + r * other.box.columns, box.columns);
}

size_t bytes_of(int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); }

}  // namespace

Box common(const Box& a, const Box& b) {
  Box box;
  box.row = std::max(a.row, b.row);
  box.rows = std::max<int64_t>(0, std::min(a.row + a.rows, b.row + b.rows) - box.row);
  box.column = std::max(a.column, b.column);
  box.columns = std::max<int64_t>(0, std::min(a.column + a.columns, b.column + b.columns) - box.column);
  return box;
}

std::vector<Box> without(const Box& box, const Box& hole) {
  const int64_t below = hole.row + hole.rows, right = hole.column + hole.columns;
  std::vector<Box> left = {{box.row, hole.row - box.row, box.column, box.columns},
                           {below, box.row + box.rows - below, box.column, box.columns},
                           {hole.row, hole.rows, box.column, hole.column - box.column},
                           {hole.row, hole.rows, right, box.column + box.columns - right}};
  std::erase_if(left, [](const Box& rest) { return rest.count() == 0; });
  return left;
}

void SavedTensors::add(const std::string& array, const std::string& file, std::vector<TensorPart> parts) {
  for (TensorPart& part : parts) {
    const Box whole{0, part.rows, 0, part.columns};
    if (part.offset < 0 || common(part.box, whole) != part.box)
      throw InputError(expectation(file + ": " + part.name, "a part of " + sizes_of(part), described(part.box)));
    Places& places = places_[{array, part.name}];
    places.push_back({std::move(part), file});
  }
}

void SavedTensors::read(const std::string& array, std::span<const TensorPart> parts, std::span<float> floats) const {
  for (const TensorPart& wanted : parts) {
    COLLIMATE_CHECK(wanted.offset + wanted.box.count() <= static_cast<int64_t>(floats.size()), "{}", wanted.name);
    read(array, places_of(array, wanted), wanted, floats.data() + wanted.offset);
  }
}

const SavedTensors::Places& SavedTensors::places_of(const std::string& array, const TensorPart& wanted) const {
  const auto found = places_.find({array, wanted.name});
  if (found == places_.end())
    throw InputError(
        expectation(where_, fmt::format("{} of {}", array, wanted.name), "none", "the model that was saved there"));
  for (const Saved& saved : found->second)
    if (saved.part.rows != wanted.rows || saved.part.columns != wanted.columns)
      throw InputError(expectation(fmt::format("{}: {} of {}", saved.file, array, wanted.name), sizes_of(wanted),
                                   sizes_of(saved.part), "the model that was saved there"));
  return found->second;
}

void SavedTensors::read(const std::string& array, const Places& places, const TensorPart& wanted, float* out) const {
  if (wanted.box.count() == 0) return;
  std::vector<Box> missing = {wanted.box};
  for (size_t i = 0; i < places.size(); ++i) {
    const Saved& saved = places[i];
    for (size_t before = 0; before < i; ++before) check_equal(places[before], saved, wanted.box);
    std::vector<Box> left;
    for (const Box& box : missing) {
      const Box found = common(box, saved.part.box);
      if (found.count() == 0) {
        left.push_back(box);
        continue;
      }
      const float* from = floats_of(saved);
      each_run(found, saved.part, wanted,
               [&](int64_t at, int64_t to, int64_t count) { std::memcpy(out + to, from + at, bytes_of(count)); });
      const std::vector<Box> rest = without(box, found);
      left.insert(left.end(), rest.begin(), rest.end());
    }
    missing = std::move(left);
  }
  if (missing.empty()) return;
  throw InputError(expectation(fmt::format("{}: {} of {}", where_, array, wanted.name), described(missing.front()),
                               "files without them", "an earlier checkpoint"));
}

const float* SavedTensors::floats_of(const Saved& saved) const {
  const std::span<const float> floats = open_(saved.file);
  const int64_t end = saved.part.offset + saved.part.box.count();
  if (end > static_cast<int64_t>(floats.size()))
    throw InputError(expectation(saved.file, fmt::format("at least {} values, with {}", end, saved.part.name),
                                 std::to_string(floats.size()), "an earlier checkpoint"));
  return floats.data() + saved.part.offset;
}

void SavedTensors::check_equal(const Saved& one, const Saved& other, const Box& wanted) const {
  const Box both = common(common(one.part.box, other.part.box), wanted);
  if (both.count() == 0) return;
  const float *a = floats_of(one), *b = floats_of(other);
  each_run(both, one.part, other.part, [&](int64_t at, int64_t to, int64_t count) {
    if (std::memcmp(a + at, b + to, bytes_of(count)) != 0)
      throw InputError(expectation(fmt::format("{}: {}", other.file, one.part.name),
                                   fmt::format("in {} the values of {}", described(both), one.file), "others",
                                   "an earlier checkpoint"));
  });
}

}  // namespace collimate::base
