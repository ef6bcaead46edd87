#include "collimate/model/torch_file.h"

#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/model/pickle.h"

namespace collimate::model {
namespace {

using base::expectation;
using base::InputError;
using caffe2::serialize::PyTorchStreamReader;

constexpr size_t kMostPickleBytes = size_t{64} << 20;

bool is_zip(std::span<const std::byte> bytes) {
  return bytes.size() > 4 && bytes[0] == std::byte{'P'} && bytes[1] == std::byte{'K'};
}

// Returns the number of a tensor's elements. Throws InputError on overflow, and when its elements are not adjacent.
uint64_t contiguous_count(const PickledTensor& tensor, const std::string& where) {
  uint64_t count = 1;
  for (size_t d = tensor.sizes.size(); d-- > 0;) {
    if (tensor.sizes[d] != 1 && static_cast<uint64_t>(tensor.strides[d]) != count)
      throw InputError(expectation(where, "adjacent values", fmt::format("strides {}", fmt::join(tensor.strides, ", ")),
                                   "saving it with .contiguous()"));
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(tensor.sizes[d]), &count))
      throw InputError(
          expectation(where, "a shape whose size fits 64 bits", fmt::format("{}", fmt::join(tensor.sizes, " x "))));
  }
  return count;
}

// Returns where a tensor's values lie in the file.
std::span<const std::byte> values_of(PyTorchStreamReader& archive, const PickledTensor& tensor,
                                     std::span<const std::byte> file, const std::string& where) {
  const std::string record = "data/" + tensor.record;
  const uint64_t element = dtype_bytes(tensor.dtype), count = contiguous_count(tensor, where);
  const uint64_t holds = archive.getRecordSize(record) / element, offset = static_cast<uint64_t>(tensor.offset);
  if (offset > holds || count > holds - offset)
    throw InputError(
        expectation(where, fmt::format("{} values from {} on", count, offset), fmt::format("a record of {}", holds)));
  const uint64_t begin = archive.getRecordOffset(record), first = offset * element, bytes = count * element;
  if (begin > file.size() || first > file.size() - begin || bytes > file.size() - begin - first)
    throw InputError(expectation(where, fmt::format("{} bytes in the file", bytes), "fewer",
                                 "downloading the file again: it is truncated"));
  return file.subspan(begin + first, bytes);
}

std::vector<TensorEntry> read_archive(const std::string& path, std::span<const std::byte> file) {
  PyTorchStreamReader archive(path);
  if (archive.hasRecord("byteorder")) {
    const auto [order, bytes] = archive.getRecord("byteorder");
    if (std::string_view(static_cast<const char*>(order.get()), bytes) != "little")
      throw InputError(expectation(path, "little-endian numbers", "others"));
  }
  if (const size_t bytes = archive.getRecordSize("data.pkl"); bytes > kMostPickleBytes)
    throw InputError(expectation(path, "names and sizes of at most 64 MiB", fmt::format("{} bytes", bytes)));
  const auto [text, bytes] = archive.getRecord("data.pkl");
  std::vector<TensorEntry> entries;
  for (const PickledTensor& tensor :
       read_pickled_tensors({static_cast<const std::byte*>(text.get()), bytes}, path + " data.pkl")) {
    const std::string where = path + " " + base::beginning_of(tensor.name, 100);
    entries.push_back({tensor.name, tensor.dtype, tensor.sizes, values_of(archive, tensor, file, where)});
  }
  return entries;
}

}  // namespace

TorchFile::TorchFile(const std::string& path) : TensorFile(path) {
  if (!is_zip(bytes()))
    throw InputError(expectation(path, "a file that torch.save wrote since version 1.6", "another",
                                 "opening and saving it with a later torch"));
  try {
    entries_ = read_archive(path, bytes());
  } catch (const c10::Error& error) {
    throw InputError(expectation(path, "an archive of torch.save", error.what_without_backtrace(),
                                 "downloading the file again: it is damaged"));
  }
}

}  // namespace collimate::model
