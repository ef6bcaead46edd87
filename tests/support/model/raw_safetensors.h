#pragma once

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collimate::model::testing {

// A tensor as a file stores it.
struct RawTensor {
  std::string name, dtype;
  std::vector<int64_t> sizes;
  std::string bytes;
};

template <typename Value>
std::string bytes_of(const std::vector<Value>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}

// The upper halves of fp32 values: bf16 without rounding.
inline std::string bf16_bytes(const std::vector<float>& values) {
  std::vector<uint16_t> halves(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    std::memcpy(&halves[i], reinterpret_cast<const char*>(&values[i]) + sizeof(uint16_t), sizeof(uint16_t));
  return bytes_of(halves);
}

// A safetensors file of any dtypes.
inline void write_raw_safetensors(const std::string& path, const std::vector<RawTensor>& tensors) {
  nlohmann::json header;
  std::string data;
  for (const RawTensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.sizes},
                           {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  const std::string text = header.dump();
  std::ofstream(path, std::ios::binary) << bytes_of<uint64_t>({text.size()}) << text << data;
}

}  // namespace collimate::model::testing
