#include "collimate/model/safetensors.h"

#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e8m0fnu.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_set>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/host/file_io.h"
#include "collimate/model/torch_file.h"

namespace collimate::model {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr const char* kIndex = ".index.json";
constexpr size_t kMaxDims = 16;
constexpr size_t kMaxShown = 100;  // bytes of what a file says that an error repeats

std::string shown(const std::string& text) { return base::beginning_of(text, kMaxShown); }
std::string shown(const json& value) { return shown(value.dump()); }

// Returns the product of the sizes times the element size. Throws InputError when it overflows.
uint64_t byte_count(const std::string& where, const std::vector<int64_t>& sizes, uint64_t element) {
  uint64_t total = element;
  for (const int64_t size : sizes)
    if (__builtin_mul_overflow(total, static_cast<uint64_t>(size), &total))
      throw InputError(
          expectation(where, "a shape whose size fits 64 bits", shown(fmt::format("{}", fmt::join(sizes, " x ")))));
  return total;
}

std::vector<int64_t> parse_sizes(const std::string& where, const json& shape) {
  std::vector<int64_t> sizes;
  if (shape.is_array())
    for (const json& size : shape)
      if (size.is_number_unsigned() && size.get<uint64_t>() <= INT64_MAX) sizes.push_back(size.get<int64_t>());
  if (!shape.is_array() || sizes.size() != shape.size())
    throw InputError(expectation(where + " shape", "a list of sizes", shown(shape)));
  return sizes;
}

TensorEntry parse_entry(const std::string& path, const std::string& name, const json& value,
                        std::span<const std::byte> data) {
  const std::string where = path + " " + shown(name);
  if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets"))
    throw InputError(expectation(where, "dtype, shape and data_offsets", shown(value)));
  TensorEntry entry{name, value["dtype"].is_string() ? value["dtype"].get<std::string>() : "", {}, {}};
  const uint64_t element = dtype_bytes(entry.dtype);
  if (element == 0) throw InputError(expectation(where + " dtype", "F32, BF16 or F16", shown(value["dtype"])));
  entry.sizes = parse_sizes(where, value["shape"]);
  const json& offsets = value["data_offsets"];
  const bool numbers =
      offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned();
  if (!numbers) throw InputError(expectation(where + " data_offsets", "[begin, end]", shown(offsets)));
  const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  const uint64_t bytes = byte_count(where + " shape", entry.sizes, element);
  if (begin > end || end - begin != bytes)
    throw InputError(expectation(where + " data_offsets",
                                 fmt::format("{} bytes for {} {}", bytes, entry.dtype, shown(value["shape"])),
                                 shown(offsets)));
  if (end > data.size())
    throw InputError(expectation(path, fmt::format("{} bytes of tensor data", end), fmt::format("{}", data.size()),
                                 "downloading the file again: it is truncated"));
  entry.data = data.subspan(begin, bytes);
  return entry;
}

// Reads the tensors of a header while it is parsed, each when its object ends. It keeps no more JSON than that of one
// tensor, and no list longer than a correct file's, so that a header of a few MB does not become many.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::span<const std::byte> data) : path_(path), data_(data) {}

  std::vector<TensorEntry> read(std::span<const std::byte> text) {
    const char* begin = reinterpret_cast<const char*>(text.data());
    const auto each = [this](int depth, json::parse_event_t event, json& parsed) { return on(depth, event, parsed); };
    if (!json::parse(begin, begin + text.size(), each, false).is_object()) refuse_header();
    return std::move(entries_);
  }

 private:
  using Event = json::parse_event_t;

  // Is called for each event of the parser and returns whether to keep what was parsed. Depth 0 is the header, 1 a
  // tensor, 2 a tensor's keys and values, 3 the numbers of a list.
  bool on(int depth, Event event, const json& parsed) {
    if (depth == 0) {
      if (event == Event::array_start) refuse_header();
      return true;
    }
    if (depth == 1 && event == Event::key) {
      name_ = parsed.get<std::string>();
      key_.clear();
      parts_.clear();
      if (!names_.insert(name_).second) refuse_again(path_, name_);
      return !is_metadata();
    }
    if (is_metadata()) return skip(depth);
    if (depth == 1) return on_tensor(event, parsed);
    if (depth == 2 && event == Event::key) {
      key_ = parsed.get<std::string>();
      if (is_read() && !parts_.insert(key_).second) refuse_again(where(), key_);
      return is_read();
    }
    return is_read() ? on_value(depth, event) : skip(depth);
  }

  bool on_tensor(Event event, const json& parsed) {
    if (event == Event::object_start) return true;
    if (event == Event::array_start) throw InputError(expectation(where(), "dtype, shape and data_offsets", "a list"));
    entries_.push_back(parse_entry(path_, name_, parsed, data_));
    return false;
  }

  // Checks a value of dtype, shape or data_offsets.
  bool on_value(int depth, Event event) {
    if (event == Event::object_start || (event == Event::array_start && depth > 2))
      throw InputError(expectation(where() + " " + key_, "a text or a list of numbers", "more than that"));
    if (event == Event::array_start) listed_ = 0;
    const size_t most = key_ == "shape" ? kMaxDims : 2;
    if (depth == 3 && ++listed_ > most)
      throw InputError(expectation(where() + " " + key_, fmt::format("at most {} numbers", most), "more"));
    return true;
  }

  bool skip(int depth) const {
    if (depth > base::kMaxJsonDepth)
      throw InputError(
          expectation(path_, fmt::format("JSON of at most {} levels", base::kMaxJsonDepth), "deeper nesting"));
    return false;
  }
  [[noreturn]] void refuse_header() const {
    throw InputError(expectation(path_, "a JSON object as header", "something else"));
  }
  [[noreturn]] static void refuse_again(const std::string& where, const std::string& key) {
    throw InputError(expectation(where, "each key once", shown(key) + " again"));
  }
  bool is_metadata() const { return name_ == "__metadata__"; }
  bool is_read() const { return key_ == "dtype" || key_ == "shape" || key_ == "data_offsets"; }
  std::string where() const { return path_ + " " + shown(name_); }

  const std::string& path_;
  const std::span<const std::byte> data_;
  std::string name_, key_;
  std::unordered_set<std::string> names_, parts_;  // keys of the header, and of the tensor's keys those that are read
  size_t listed_ = 0;                              // values of the list that is being read
  std::vector<TensorEntry> entries_;
};

// Throws InputError unless the tensors cover the data once: no overlap, no gap, nothing after the last tensor.
void check_coverage(const std::string& path, const std::vector<TensorEntry>& sorted, std::span<const std::byte> data) {
  const std::byte* next = data.data();
  for (const TensorEntry& entry : sorted) {
    if (entry.data.data() != next)
      throw InputError(expectation(path + " " + shown(entry.name), fmt::format("data at offset {}", next - data.data()),
                                   fmt::format("offset {}: tensors {}", entry.data.data() - data.data(),
                                               entry.data.data() < next ? "overlap" : "leave a gap")));
    next += entry.data.size();
  }
  if (next != data.data() + data.size())
    throw InputError(
        expectation(path, fmt::format("{} bytes of tensor data", next - data.data()), fmt::format("{}", data.size())));
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16, exponent = (half >> 10) & 0x1FU;
  const uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide = exponent == 31 ? 255U : exponent + 112U;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

// Holds two values of four bits (E2M1); e2m1_to_float widens one of them.
struct Nibbles {
  uint8_t both;
};
float e2m1_to_float(uint8_t code) {
  constexpr float kMagnitudes[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  const float magnitude = kMagnitudes[code & 7U];
  return (code & 8U) != 0 ? -magnitude : magnitude;
}

// Calls visit(one value, or two Nibbles, of the type that the entry stores; a function that widens one value).
template <typename Visit>
void visit_storage(const TensorEntry& entry, const std::string& where, const Visit& visit,
                   const char* dtypes = "F32, BF16 or F16") {
  if (entry.dtype == "F32") return visit(float{}, [](float value) { return value; });
  if (entry.dtype == "BF16")
    return visit(uint16_t{}, [](uint16_t v) { return std::bit_cast<float>(static_cast<uint32_t>(v) << 16); });
  if (entry.dtype == "F16") return visit(uint16_t{}, half_to_float);
  if (entry.dtype == "F8_E4M3" && entry.scales.numbers != nullptr)
    return visit(uint8_t{}, c10::detail::fp8e4m3fn_to_fp32_value);
  if (entry.dtype == kMxfp4 && entry.scales.numbers != nullptr) return visit(Nibbles{}, e2m1_to_float);
  throw InputError(expectation(where + " " + shown(entry.name) + " dtype", dtypes, entry.dtype));
}

// Calls `visit` as visit_storage does. Scales may also be powers of two (OCP Microscaling Formats 1.0, 5.4.1).
template <typename Visit>
void visit_scales(const TensorEntry& entry, const std::string& where, const Visit& visit) {
  if (entry.dtype == "F8_E8M0")
    return visit(uint8_t{},
                 [](uint8_t bits) -> float { return c10::Float8_e8m0fnu(bits, c10::Float8_e8m0fnu::from_bits()); });
  visit_storage(entry, where, visit, "F32, BF16, F16 or F8_E8M0");
}

float scale_at(const TensorEntry& entry, const std::string& where, int64_t i) {
  float value = 0;
  visit_scales(entry, where, [&](auto stored, const auto& wide) {
    std::memcpy(&stored, entry.data.data() + static_cast<size_t>(i) * sizeof(stored), sizeof(stored));
    if constexpr (!std::is_same_v<decltype(stored), Nibbles>) value = wide(stored);  // scales are no nibbles
  });
  return value;
}

// Multiplies out[place(i)] by the scale of value i, for the values of one block in one row at a time.
template <typename Place>
void multiply_scales(const BlockScales& by, const std::string& where, std::span<float> out, Place place) {
  const int64_t count = std::ssize(out), blocks = (by.columns + by.block_columns - 1) / by.block_columns;
  for (int64_t i = 0; i < count;) {
    const int64_t row = (by.first + i) / by.columns, column = (by.first + i) % by.columns;
    const int64_t rest = std::min(by.block_columns - column % by.block_columns, by.columns - column);
    const int64_t end = std::min(count, i + rest);
    const float scale = scale_at(*by.numbers, where, row / by.block_rows * blocks + column / by.block_columns);
    for (; i < end; ++i) out[place(static_cast<size_t>(i))] *= scale;
  }
}

template <typename Place>
void read_placed(const TensorEntry& entry, const std::string& where, std::span<float> out, Place place) {
  COLLIMATE_CHECK(static_cast<int64_t>(out.size()) == entry.count(), "{}", entry.name);
  visit_storage(entry, where, [&](auto stored, const auto& wide) {
    constexpr bool kTwo = std::is_same_v<decltype(stored), Nibbles>;
    for (size_t i = 0; i < out.size(); ++i) {
      std::memcpy(&stored, entry.data.data() + (kTwo ? i / 2 : i) * sizeof(stored), sizeof(stored));
      if constexpr (kTwo)
        out[place(i)] = wide(static_cast<uint8_t>(i % 2 == 0 ? stored.both & 15U : stored.both >> 4));
      else
        out[place(i)] = wide(stored);
    }
  });
  if (entry.scales.numbers != nullptr) multiply_scales(entry.scales, where, out, place);
}

}  // namespace

uint64_t dtype_bytes(const std::string& dtype) {
  static const std::map<std::string, uint64_t> kBytes = {
      {"BOOL", 1}, {"U8", 1},   {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"I16", 2}, {"U16", 2},
      {"F16", 2},  {"BF16", 2}, {"I32", 4}, {"U32", 4},     {"F32", 4},     {"I64", 8},     {"U64", 8}, {"F64", 8}};
  const auto found = kBytes.find(dtype);
  return found == kBytes.end() ? 0 : found->second;
}

int64_t TensorEntry::count() const {
  int64_t total = 1;
  for (const int64_t size : sizes) total *= size;
  return total;
}

TensorEntry part_of(const TensorEntry& entry, size_t first, size_t count) {
  // Each value has a whole number of bytes, or two values share a byte.
  const size_t bytes = entry.data.size(), all = static_cast<size_t>(entry.count()), width = bytes / all;
  COLLIMATE_CHECK(width > 0 || first % 2 == 0, "{} begins within a byte", entry.name);
  const size_t begin = width > 0 ? first * width : first / 2, size = width > 0 ? count * width : (count + 1) / 2;
  TensorEntry part = {entry.name, entry.dtype, {static_cast<int64_t>(count)}, entry.data.subspan(begin, size)};
  part.upright = entry.upright;
  part.scales = entry.scales;
  part.scales.first += static_cast<int64_t>(first);
  return part;
}

SafetensorsFile::SafetensorsFile(const std::string& path) : TensorFile(path) {
  const auto bytes = this->bytes();
  uint64_t header_bytes = 0;
  if (bytes.size() < sizeof(header_bytes))
    throw InputError(expectation(path, "a safetensors file", fmt::format("{} bytes", bytes.size())));
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  if (header_bytes > kMaxHeaderBytes)
    throw InputError(expectation(path, fmt::format("a header of at most {} bytes", kMaxHeaderBytes),
                                 fmt::format("{}", header_bytes), "another file: this is no safetensors file"));
  const auto rest = bytes.subspan(sizeof(header_bytes));
  if (header_bytes > rest.size())
    throw InputError(expectation(path, fmt::format("a header of {} bytes", header_bytes),
                                 fmt::format("a file of {} bytes", bytes.size()),
                                 "downloading the file again: it is truncated"));
  const auto data = rest.subspan(header_bytes);
  entries_ = HeaderReader(path, data).read(rest.first(header_bytes));
  std::sort(entries_.begin(), entries_.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
  });
  check_coverage(path, entries_, data);
}

std::map<std::string, std::vector<std::string>> weight_files(const std::string& directory) {
  const std::string safe = directory + "/model.safetensors", pickled = directory + "/pytorch_model.bin";
  const auto exists = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  const bool is_safe = exists(safe + kIndex) || exists(safe) || !(exists(pickled) || exists(pickled + kIndex));
  const std::string whole = is_safe ? safe : pickled, index_path = whole + kIndex;
  if (!exists(index_path)) return {{whole, {}}};
  const json index = base::parse_json(host::read_file(index_path), index_path, 1);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    throw InputError(expectation(index_path, "an object with a weight_map", "something else"));
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [name, shard] : index["weight_map"].items()) {
    if (!shard.is_string() || shard.get<std::string>().find('/') != std::string::npos)
      throw InputError(expectation(index_path + " " + shown(name), "a file name", shown(shard)));
    files[directory + "/" + shard.get<std::string>()].push_back(name);
  }
  return files;
}

std::vector<std::string> adapter_files(const std::string& directory) {
  for (const char* name : {"/adapter_model.safetensors", "/adapter_model.bin"})
    if (::access((directory + name).c_str(), F_OK) == 0) return {directory + "/adapter_config.json", directory + name};
  throw InputError(expectation(directory, "adapter_model.safetensors beside adapter_config.json", "none"));
}

TensorDirectory::TensorDirectory(const std::string& directory) {
  for (const auto& [path, names] : weight_files(directory)) {
    if (::access(path.c_str(), F_OK) != 0)
      throw InputError(expectation(path, "the model's weights", "no such file",
                                   "downloading the model again (hf download NAME), or from_scratch: true in a config, "
                                   "which begins with random weights"));
    add(path);
    for (const std::string& name : names)
      if (find(name) == nullptr) throw InputError(expectation(path, "tensor " + shown(name), "a file without it"));
  }
}

std::unique_ptr<TensorFile> open_tensor_file(const std::string& path) {
  if (path.ends_with(".bin")) return std::make_unique<TorchFile>(path);
  return std::make_unique<SafetensorsFile>(path);
}

void TensorDirectory::add(const std::string& path) {
  files_.push_back(open_tensor_file(path));
  for (const TensorEntry& entry : files_.back()->entries()) add(path, entry);
}

void TensorDirectory::add(const std::string& path, const TensorEntry& entry) {
  if (!by_name_.emplace(entry.name, &entry).second)
    throw InputError(expectation(path + " " + shown(entry.name), "one tensor of that name", "a second one"));
}

void TensorDirectory::replace(const TensorEntry& entry, std::vector<TensorEntry> parts) {
  by_name_.erase(entry.name);
  for (TensorEntry& part : parts) add(entry.name, parts_.emplace_back(std::move(part)));
}

const TensorEntry* TensorDirectory::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

void check_dtype(const TensorEntry& entry, const std::string& where) {
  visit_storage(entry, where, [](auto, const auto&) {});
}

void check_scale_dtype(const TensorEntry& entry, const std::string& where) {
  visit_scales(entry, where, [](auto, const auto&) {});
}

void read_floats(const TensorEntry& entry, const std::string& where, std::span<float> out) {
  read_placed(entry, where, out, [](size_t i) { return i; });
}

void read_floats_transposed(const TensorEntry& entry, const std::string& where, std::span<float> out) {
  COLLIMATE_CHECK(entry.sizes.size() == 2, "{}", entry.name);
  const auto rows = static_cast<size_t>(entry.sizes[0]), columns = static_cast<size_t>(entry.sizes[1]);
  read_placed(entry, where, out, [rows, columns](size_t i) { return i % columns * rows + i / columns; });
}

}  // namespace collimate::model
