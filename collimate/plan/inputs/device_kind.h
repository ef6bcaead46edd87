#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace collimate::plan {

// Rates are peaks as the maker states them; what software reaches of them is in Constants. device_keys() says what each
// number is.
struct DeviceNumbers {
  double flops = 0, fp8_flops = 0;
  double memory_bytes = 0, memory_bytes_per_second = 0;
  double link_bytes_per_second = 0, host_bytes_per_second = 0, network_bytes_per_second = 0;
  int per_node = 8;
  double dollars_per_hour = 0;
  double weight_bytes = 2, value_bytes = 2;
  bool operator==(const DeviceNumbers&) const = default;
};

// One kind of device.
struct DeviceKind : DeviceNumbers {
  std::string name;
  std::string source;
  bool network_given = false, price_given = false;  // instead of those of its kind
  bool cpu = false;                                 // "cpu", and kinds made of it: no GPU
  bool operator==(const DeviceKind&) const = default;
};

// Devices of two kinds that work in step can count on this: of what they have the lesser number, of what they need the
// greater one.
enum class InStep { kLesser, kGreater };

// One number of a kind, whole where it is an int: DeviceKinds::set, in_step, the tables that are shown and
// docs/planner.md follow from it.
struct DeviceKey {
  const char* name;
  std::variant<double DeviceNumbers::*, int DeviceNumbers::*> member;
  double low, high;
  InStep in_step;
  const char *unit, *help;
};
std::span<const DeviceKey> device_keys();

// Gives the kinds of the program, and where their prices come from (inputs/device_kind_table.cpp).
std::vector<DeviceKind> known_device_kinds();
const std::string& price_source();
// Gives what devices of both kinds can count on where they work in step.
DeviceKind in_step(const DeviceKind& a, const DeviceKind& b);

// The kinds that a request may name: those of the program, and what the user changes or adds.
class DeviceKinds {
 public:
  // `A100-80.memory_bytes=64e9` changes a number of a kind, `X9=A100-80` makes a new kind of one that there is. Numbers
  // have units of one. InputError with the nearest kind or key.
  void set(const std::string& assignment);

  const std::vector<DeviceKind>& all() const { return kinds_; }
  std::vector<std::string> names() const;
  // Case, blanks and a trailing "GB" do not matter; "A100" is the larger of its memories. InputError with the nearest
  // name.
  DeviceKind find(const std::string& name) const;
  // Does as find(), but returns nothing instead of an error.
  std::optional<DeviceKind> named(const std::string& name) const;
  // The kind that was meant by a name that is none, by its letters.
  DeviceKind nearest(const std::string& name) const;

 private:
  void add(const std::string& name, const std::string& like);

  std::vector<DeviceKind> kinds_ = known_device_kinds();
};

}  // namespace collimate::plan
