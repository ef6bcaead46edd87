#pragma once

#include <string>
#include <vector>

namespace collimate::plan {

// One kind of device. Rates are peaks as its maker states them; what software reaches of them is in Constants.
struct Gpu {
  std::string name;
  double flops = 0;      // dense, in bf16 (fp16 where there is no bf16), per second
  double fp8_flops = 0;  // 0: none
  double memory_bytes = 0;
  double memory_bytes_per_second = 0;
  double link_bytes_per_second = 0;     // to its neighbours in the node, one direction
  double host_bytes_per_second = 0;     // to the memory of its host, one direction
  int per_node = 8;                     // as usually sold
  double network_bytes_per_second = 0;  // of its share of the node's network cards, one direction
  double dollars_per_hour = 0;          // price_source(), or as given
  double weight_bytes = 2;              // that software holds of a weight: a CPU's values and panels, both in fp32
  double value_bytes = 2;               // of an activation, a key or a value
  bool network_given = false, price_given = false;  // instead of those of its kind
  std::string source;
  bool operator==(const Gpu&) const = default;
};

// The table, with what set_device has changed or added.
const std::vector<Gpu>& gpus();
// `A100-80.memory_bytes=64e9` changes a number of a kind, `X9=A100-80` makes a new kind of one that there is, for this
// process: to be called before a cluster is read. Numbers have units of one. InputError with the nearest kind or key.
void set_device(const std::string& assignment);
// What devices of both kinds can count on where they work in step: the lesser of each number.
Gpu in_step(const Gpu& a, const Gpu& b);
std::vector<std::string> gpu_names();
// Case, blanks and a trailing "GB" do not matter; "A100" is the larger of its memories. InputError with the nearest
// name.
const Gpu& find_gpu(const std::string& name);
// The kind that was meant by a name that is none, by its letters.
const Gpu& nearest_gpu(const std::string& name);
// Where dollars_per_hour of the table comes from.
const std::string& price_source();
// Null instead of an error.
const Gpu* gpu_named(const std::string& name);

}  // namespace collimate::plan
