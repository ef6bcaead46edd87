#include <c10/util/BFloat16.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"
#include "collimate/model/safetensors.h"

namespace collimate::model {
namespace {

size_t count_of(const TensorToWrite& tensor) {
  size_t count = 1;
  for (const int64_t size : tensor.sizes) count *= static_cast<size_t>(size);
  return count;
}

// Returns the header with its length in front, padded with spaces so that the data begin at a multiple of 64 bytes.
std::string header_text(const std::vector<TensorToWrite>& tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  size_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    const size_t bytes = count_of(tensor) * dtype_bytes(tensor.dtype);
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.sizes}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 8 + 63) / 64 * 64 - 8, ' ');
  const uint64_t length = text.size();
  std::string framed(sizeof(length), '\0');
  std::memcpy(framed.data(), &length, sizeof(length));
  return framed + text;
}

void write_values(host::AtomicFile& file, const std::string& dtype, std::span<const float> values) {
  if (dtype == "F32") return file.write(std::as_bytes(values));
  COLLIMATE_CHECK(dtype == "BF16", "{}", dtype);
  const std::vector<c10::BFloat16> rounded(values.begin(), values.end());
  file.write(std::as_bytes(std::span(rounded)));
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors) {
  host::AtomicFile file(path);
  file.write(header_text(tensors));
  std::vector<float> values;
  for (const TensorToWrite& tensor : tensors) {
    values.resize(count_of(tensor));
    tensor.fill(values);
    write_values(file, tensor.dtype, values);
  }
  file.commit();
}

}  // namespace collimate::model
