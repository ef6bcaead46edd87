#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace collimate::plan {

// DeviceNumbers describe a device. Rates are peaks as the maker states them; Constants say what software reaches of
// them, and device_keys() what each number is.
struct DeviceNumbers {
  double flops = 0, fp8_flops = 0;
  double memory_bytes = 0, memory_bytes_per_second = 0;
  double link_bytes_per_second = 0, host_bytes_per_second = 0, network_bytes_per_second = 0;
  int per_node = 8;
  double dollars_per_hour = 0;
  double weight_bytes = 2, value_bytes = 2;
  bool operator==(const DeviceNumbers&) const = default;
};

// A DeviceKind has the numbers of one kind of device, and where they come from.
struct DeviceKind : DeviceNumbers {
  std::string name;
  std::string source;
  bool network_given = false, price_given = false;  // by the user, in place of the kind's own
  bool cpu = false;                                 // "cpu" and kinds made of it, which are no GPUs
  bool operator==(const DeviceKind&) const = default;
};

// InStep says what devices of two kinds that work in step can count on: the lesser number of what they have, the
// greater one of what they need.
enum class InStep { kLesser, kGreater };

// A DeviceKey describes one number of a kind, which is whole where the member is an int. DeviceKinds::set, in_step, the
// tables that are shown and docs/planner.md follow from it.
struct DeviceKey {
  const char* name;
  std::variant<double DeviceNumbers::*, int DeviceNumbers::*> member;
  double low, high;
  InStep in_step;
  const char *unit, *help;
};
std::span<const DeviceKey> device_keys();

// known_device_kinds() returns the kinds of the program, price_source() where their prices come from
// (inputs/device_kind_table.cpp).
std::vector<DeviceKind> known_device_kinds();
const std::string& price_source();
// Returns what devices of both kinds can count on where they work in step.
DeviceKind in_step(const DeviceKind& a, const DeviceKind& b);

// DeviceKinds are the kinds that a request may name: those of the program, and what the user changes or adds.
class DeviceKinds {
 public:
  // Changes a number of a kind, as `A100-80.memory_bytes=64e9`, or makes a new kind of one that there is, as
  // `X9=A100-80`. Numbers have no prefixes: they are in bytes, FLOP/s and so on. Throws InputError with the nearest
  // kind or key.
  void set(const std::string& assignment);

  const std::vector<DeviceKind>& all() const { return kinds_; }
  std::vector<std::string> names() const;
  // Returns the kind of this name. Case, blanks and a trailing "GB" do not matter; "A100" is the one with more memory.
  // Throws InputError with the nearest name.
  DeviceKind find(const std::string& name) const;
  // Does as find(), but returns nothing in place of an error.
  std::optional<DeviceKind> named(const std::string& name) const;
  // Returns the kind whose name looks most like a name that no kind has.
  DeviceKind nearest(const std::string& name) const;

 private:
  void add(const std::string& name, const std::string& like);

  std::vector<DeviceKind> kinds_ = known_device_kinds();
};

}  // namespace collimate::plan
