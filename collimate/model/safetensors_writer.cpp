#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/model/safetensors.h"

namespace collimate::model {
namespace {

// A file that appears under its name only when it is complete. The destructor removes an unfinished one.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path) : path_(path), temporary_(path + ".tmp." + std::to_string(::getpid())) {
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file_ < 0) fail();
  }
  ~AtomicFile() {
    if (file_ >= 0) {
      ::close(file_);
      ::unlink(temporary_.c_str());
    }
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes) {
    const char* next = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = ::write(file_, next, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      next += written;
      bytes -= static_cast<size_t>(written);
    }
  }

  void commit() {
    if (::fsync(file_) != 0) fail();
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
    ::close(file_);
    file_ = -1;
  }

 private:
  [[noreturn]] void fail() const {
    throw base::RunError(base::expectation(path_, "to write this file", std::strerror(errno)));
  }

  std::string path_, temporary_;
  int file_ = -1;
};

size_t count_of(const TensorToWrite& tensor) {
  size_t count = 1;
  for (const int64_t size : tensor.sizes) count *= static_cast<size_t>(size);
  return count;
}

// The header with its length, padded with spaces so that the data begin at a multiple of 64 bytes.
std::string header_text(const std::vector<TensorToWrite>& tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  size_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    const size_t bytes = count_of(tensor) * sizeof(float);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.sizes}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 8 + 63) / 64 * 64 - 8, ' ');
  const uint64_t length = text.size();
  std::string framed(sizeof(length), '\0');
  std::memcpy(framed.data(), &length, sizeof(length));
  return framed + text;
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors) {
  AtomicFile file(path);
  const std::string header = header_text(tensors);
  file.write(header.data(), header.size());
  std::vector<float> values;
  for (const TensorToWrite& tensor : tensors) {
    values.resize(count_of(tensor));
    tensor.fill(values);
    file.write(values.data(), values.size() * sizeof(float));
  }
  file.commit();
}

void write_text_atomically(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace collimate::model
