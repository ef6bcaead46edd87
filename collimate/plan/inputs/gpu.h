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
  std::string source;
  bool operator==(const Gpu&) const = default;
};

const std::vector<Gpu>& gpus();
// What devices of both kinds can count on where they work in step: the lesser of each number.
Gpu in_step(const Gpu& a, const Gpu& b);
// Case, blanks and a trailing "GB" do not matter; "A100" is the larger of its memories. InputError with the nearest
// name.
const Gpu& find_gpu(const std::string& name);
// Where dollars_per_hour of the table comes from, and whether a device has another than the table's.
const std::string& price_source();
bool price_is_given(const Gpu& gpu);
// Null instead of an error.
const Gpu* gpu_named(const std::string& name);

}  // namespace collimate::plan
