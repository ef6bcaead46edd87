#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "collimate/plan/cost/functions.h"
#include "collimate/plan/layout/candidates.h"

namespace collimate::plan {

// A Choice is one way to run a function. A swapped one moves its frozen model in before use and drops it afterwards.
struct Choice : Candidate {
  bool swapped = false;
};

// Returns whether two layouts cut a model's weights into the same parts.
bool same_cut(const graph::Layout& a, const graph::Layout& b);
// Returns whether a function reads the weights of its base in place, if both have the same devices: that needs the same
// cut, and neither of them swapped. C is a Choice, or another type with `swapped` and `how`.
template <class C>
bool reads_in_place(const C& base, const C& reader) {
  return !base.swapped && !reader.swapped && same_cut(base.how.layout, reader.how.layout);
}

// Returns whether a reader of new weights, one of the functions `readers` of a model, takes those that come for one
// ahead of it, as it cuts them alike. how_of(function) is a function's Execution.
template <class HowOf>
bool has_copy_ahead(const std::vector<int>& readers, size_t reader, const HowOf& how_of) {
  for (size_t ahead = 0; ahead < reader; ++ahead)
    if (same_cut(how_of(readers[ahead]).layout, how_of(readers[reader]).layout)) return true;
  return false;
}

// A ChoiceList has the ways to run a function on some devices, the fastest first, and the least bytes and seconds of
// any.
struct ChoiceList {
  std::vector<Choice> all;
  double least_resident = 0, least_transient = 0;
  Finish least_finish = {};
  bool empty() const { return all.empty(); }
};

// A ChoiceTable has the choices of every function, worked out once for each number and kinds of devices. If `pruned`, a
// choice stays only where no other one is at least as good in seconds (of every part of its rows), resident and
// transient bytes. For functions that may share weights or send them, only choices of the same cut are compared, else
// all.
class ChoiceTable {
 public:
  ChoiceTable(const Request& request, const Functions& functions, bool pruned);

  // Returns the choices of a function on devices. A function on the host has the same list whatever the devices.
  const ChoiceList& of(size_t function, DeviceRange devices);
  const Job& job(size_t function, DeviceRange devices);
  const Constants& constants() const { return request_.constants; }
  // Returns why a function does not fit on these devices; "" when it does.
  std::string why(size_t function, DeviceRange devices);

 private:
  using Key = std::tuple<int, int, Kinds>;  // class of the function, number of devices and their kinds
  Key key_of(size_t function, DeviceRange devices) const;
  ChoiceList make(size_t function, DeviceRange devices);
  std::vector<Choice> expand(const Job& job, const Candidate& candidate, size_t function) const;
  std::vector<Choice> waves(const Job& job, const Candidate& candidate, int64_t fixed_rows) const;

  const Request& request_;
  const Functions& functions_;
  bool pruned_;
  std::vector<int> class_of_;  // functions of the same shape and work cost the same
  std::map<Key, ChoiceList> known_;
  std::map<Key, Job> jobs_;
  std::map<Key, std::string> why_;
};

}  // namespace collimate::plan
