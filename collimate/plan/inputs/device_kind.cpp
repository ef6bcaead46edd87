#include "collimate/plan/inputs/device_kind.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/lower_case.h"
#include "collimate/base/named.h"
#include "collimate/base/nearest_number.h"

namespace collimate::plan {
namespace {

// Returns the letters and digits of a name in lower case, without endings such as "gb" or "sxm5".
std::string plain(const std::string& name) {
  std::string kept = base::plain_name(name);
  for (const std::string ending : {"gb", "sxm", "sxm2", "sxm4", "sxm5", "hbm3"})
    if (kept.size() > ending.size() && kept.ends_with(ending)) kept.resize(kept.size() - ending.size());
  return kept;
}

using N = DeviceNumbers;

constexpr DeviceKey kDeviceKeys[] = {
    {"flops", &N::flops, 1e6, 1e18, InStep::kLesser, "FLOP/s", "dense, in bf16 (fp16 where there is no bf16)"},
    {"fp8_flops", &N::fp8_flops, 0, 1e18, InStep::kLesser, "FLOP/s", "dense, in fp8; 0: none"},
    {"memory_bytes", &N::memory_bytes, 1e6, 1e14, InStep::kLesser, "bytes", "memory"},
    {"memory_bytes_per_second", &N::memory_bytes_per_second, 1e6, 1e15, InStep::kLesser, "bytes/s", "its bandwidth"},
    {"link_bytes_per_second", &N::link_bytes_per_second, 1e6, 1e14, InStep::kLesser, "bytes/s",
     "to its neighbours in the node, one direction"},
    {"host_bytes_per_second", &N::host_bytes_per_second, 1e6, 1e14, InStep::kLesser, "bytes/s",
     "to the memory of its host, one direction"},
    {"network_bytes_per_second", &N::network_bytes_per_second, 1e5, 1e14, InStep::kLesser, "bytes/s",
     "of its share of the node's network cards, one direction"},
    {"per_node", &N::per_node, 1, 1024, InStep::kLesser, "devices", "in a node, as usually sold"},
    {"dollars_per_hour", &N::dollars_per_hour, 0, 1e5, InStep::kLesser, "dollars", "price of a device"},
    {"weight_bytes", &N::weight_bytes, 0.5, 64, InStep::kGreater, "bytes",
     "held of a weight; a CPU's are values and panels, both in fp32"},
    {"value_bytes", &N::value_bytes, 0.5, 8, InStep::kGreater, "bytes", "of an activation, a key or a value"}};
// Every number takes 8 bytes, an int with its padding.
static_assert(sizeof(DeviceNumbers) == std::size(kDeviceKeys) * 8, "a number of DeviceNumbers that has no key");

double number_of(const DeviceNumbers& numbers, const DeviceKey& key) {
  return std::visit([&](auto member) { return static_cast<double>(numbers.*member); }, key.member);
}

template <class Number>
void assign(DeviceNumbers& numbers, Number DeviceNumbers::*member, double value) {
  numbers.*member = static_cast<Number>(value);
}

void set_number(DeviceNumbers& numbers, const DeviceKey& key, double value) {
  std::visit([&](auto member) { assign(numbers, member, value); }, key.member);
}

bool whole(const DeviceKey& key) { return std::holds_alternative<int DeviceNumbers::*>(key.member); }

// Reads a number within the key's limits. `now` is its present value, which an error suggests in place of no number.
double read_number(const DeviceKey& key, const std::string& text, const std::string& where, double now) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= key.low && value <= key.high))
    throw base::InputError(
        base::expectation(where, fmt::format("a number from {} to {} {}", key.low, key.high, key.unit),
                          "'" + text + "'", base::nearest_number(text, key.low, key.high, fmt::format("{}", now))));
  if (whole(key) && value != std::floor(value))
    throw base::InputError(base::expectation(where, fmt::format("whole {}", key.unit), "'" + text + "'",
                                             fmt::format("{}", std::round(value))));
  return value;
}

void set_number(DeviceKind& kind, const std::string& name, const std::string& text) {
  kind.source = "--device";
  const auto* key = std::ranges::find(kDeviceKeys, name, &DeviceKey::name);
  if (key == std::end(kDeviceKeys))
    base::throw_unknown_choice("--device " + kind.name, name, base::names_of(kDeviceKeys));
  set_number(kind, *key, read_number(*key, text, "--device " + kind.name + "." + name, number_of(kind, *key)));
  kind.price_given = kind.price_given || name == "dollars_per_hour";
}

// Throws InputError where a kind has this name already, or a cluster's text could not contain it.
void check_new_name(const std::string& name, bool known) {
  if (known)
    throw base::InputError(
        base::expectation("--device", "a new kind's name", "'" + name + "', which there is", name + ".memory_bytes=…"));
  const bool plain_name = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  });
  if (!plain_name || name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0)
    throw base::InputError(base::expectation("--device", "a new kind's name of letters, digits, - and _ after a letter",
                                             "'" + name + "'", "X9=A100-80"));
}

}  // namespace

std::span<const DeviceKey> device_keys() { return kDeviceKeys; }

DeviceKind in_step(const DeviceKind& a, const DeviceKind& b) {
  DeviceKind made = a;
  if (a.name != b.name) made.name += "+" + b.name;
  for (const DeviceKey& key : kDeviceKeys) {
    const auto [lesser, greater] = std::minmax({number_of(a, key), number_of(b, key)});
    set_number(made, key, key.in_step == InStep::kLesser ? lesser : greater);
  }
  return made;
}

void DeviceKinds::add(const std::string& name, const std::string& like) {
  check_new_name(name, named(name).has_value());
  DeviceKind made = find(like);
  made.source = "--device, as " + made.name;
  made.name = name;
  kinds_.push_back(made);
}

void DeviceKinds::set(const std::string& assignment) {
  const size_t equals = std::min(assignment.find('='), assignment.size()), dot = assignment.rfind('.', equals);
  const std::string value = equals < assignment.size() ? assignment.substr(equals + 1) : "";
  const bool number = dot != std::string::npos && dot < equals;
  const std::string name = assignment.substr(0, number ? dot : equals);
  if (!number && equals < assignment.size()) return add(name, value);
  if (!number)
    throw base::InputError(base::expectation("--device", "KIND.KEY=NUMBER or NEW=KIND", "'" + assignment + "'",
                                             "A100-80.memory_bytes=64e9"));
  const std::string exact = find(name).name;
  for (DeviceKind& kind : kinds_)
    if (kind.name == exact) set_number(kind, assignment.substr(dot + 1, equals - dot - 1), value);
}

std::vector<std::string> DeviceKinds::names() const { return base::names_of(kinds_); }

std::optional<DeviceKind> DeviceKinds::named(const std::string& name) const {
  const std::string wanted = plain(name);
  if (wanted.empty()) return std::nullopt;
  std::optional<DeviceKind> family;  // the last one, with most memory, of a name without its memory
  for (const DeviceKind& known : kinds_) {
    if (plain(known.name) == wanted) return known;
    if (plain(known.name.substr(0, known.name.find('-'))) == wanted) family = known;
  }
  return family;
}

DeviceKind DeviceKinds::find(const std::string& name) const {
  if (const std::optional<DeviceKind> known = named(name)) return *known;
  throw base::InputError(base::expectation("gpu", fmt::format("one of {}", fmt::join(names(), ", ")), "'" + name + "'",
                                           "'" + nearest(name).name + "'"));
}

DeviceKind DeviceKinds::nearest(const std::string& name) const {
  if (const std::string near = base::nearest(name, names()); !near.empty()) return *named(near);
  std::vector<std::string> families;
  for (const DeviceKind& known : kinds_) families.push_back(known.name.substr(0, known.name.find('-')));
  return *named(base::closest(name.substr(0, name.find('-')), families));
}

}  // namespace collimate::plan
