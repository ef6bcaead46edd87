#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collimate/host/mapped_file.h"

namespace collimate::model {

struct TensorEntry;

// These numbers multiply the values of a tensor [rows, columns], one number for each block of the tensor. The last
// block of a row or column may be cut off.
struct BlockScales {
  const TensorEntry* numbers = nullptr;  // [blocks of rows, blocks of columns]; null: the values are as they are
  int64_t block_rows = 1, block_columns = 1;
  int64_t columns = 1;
  int64_t first = 0;  // index in that tensor [rows, columns] of the entry's first value
};

// This dtype has values of four bits, the first of two in the lower half of a byte, with a scale for each 32 values of
// a row (OCP Microscaling Formats 1.0). No file names it: entries have it that are joined from several file tensors
// (quantized.h).
inline constexpr const char* kMxfp4 = "MXFP4";

// Describes one tensor of a file: `data` points into the mapped file and lives as long as it.
struct TensorEntry {
  std::string name;
  std::string dtype;  // "F32", "BF16", "F16", …
  std::vector<int64_t> sizes;
  std::span<const std::byte> data;
  BlockScales scales = {};
  bool upright = false;  // [out, in], also where the family's files have [in, out]
  int64_t count() const;
};

// Returns the bytes of an element; 0 for a text that is no dtype of files.
uint64_t dtype_bytes(const std::string& dtype);

// Returns values [first, first + count) of an entry, in the file's own order, as an entry.
TensorEntry part_of(const TensorEntry& entry, size_t first, size_t count);

// Holds a mapped file and the tensors that lie in it.
class TensorFile {
 public:
  explicit TensorFile(const std::string& path) : path_(path), file_(path) {}
  virtual ~TensorFile() = default;

  const std::string& path() const { return path_; }
  const std::vector<TensorEntry>& entries() const { return entries_; }

 protected:
  std::span<const std::byte> bytes() const { return file_.bytes(); }
  std::vector<TensorEntry> entries_;

 private:
  std::string path_;
  host::MappedFile file_;
};

// Maps a .safetensors file. The constructor validates the whole header against the file: length, JSON, dtypes, shapes
// whose product overflows, offsets, overlaps, gaps. It allocates at most a few times the header's own size. It throws
// InputError for a bad file, which repeats no more than about 100 bytes of a name or value.
class SafetensorsFile final : public TensorFile {
 public:
  explicit SafetensorsFile(const std::string& path);
};

// Opens a .safetensors file, or a file of torch.save if its name ends in .bin.
std::unique_ptr<TensorFile> open_tensor_file(const std::string& path);

// Returns the weight files of a Hugging Face directory, each with the names of the tensors that
// model.safetensors.index.json expects in it: its shards, or model.safetensors alone where there is no index. Where
// there is neither, the same holds for pytorch_model.bin. Throws InputError when the index cannot be read.
std::map<std::string, std::vector<std::string>> weight_files(const std::string& directory);

// Returns the paths of PEFT's config and adapters in a directory. Throws InputError when there are no adapters.
std::vector<std::string> adapter_files(const std::string& directory);

// Holds the tensors of a directory's weight files by name.
class TensorDirectory {
 public:
  explicit TensorDirectory(const std::string& directory);
  // Returns null when there is no tensor of that name.
  const TensorEntry* find(const std::string& name) const;
  const std::map<std::string, const TensorEntry*>& entries() const { return by_name_; }
  // Puts `parts`, under names of their own, in the place of the tensor of the entry's name. Where there is no such
  // tensor they are added. Throws InputError when one of their names is taken.
  void replace(const TensorEntry& entry, std::vector<TensorEntry> parts);

 private:
  void add(const std::string& path);
  void add(const std::string& path, const TensorEntry& entry);

  std::vector<std::unique_ptr<TensorFile>> files_;
  std::deque<TensorEntry> parts_;
  std::map<std::string, const TensorEntry*> by_name_;
};

// Throws InputError for a dtype that is neither F32, BF16 nor F16, nor F8_E4M3 or MXFP4 with scales.
void check_dtype(const TensorEntry& entry, const std::string& where);
// Checks the dtype of scales, which may be F8_E8M0, powers of two, too.
void check_scale_dtype(const TensorEntry& entry, const std::string& where);
// Reads an entry widened to fp32 and multiplied by its scales in fp32. `out` holds entry.count() floats. Throws
// InputError as check_dtype.
void read_floats(const TensorEntry& entry, const std::string& where, std::span<float> out);
// Reads a [rows, columns] tensor of the file in the same way and writes it as [columns, rows].
void read_floats_transposed(const TensorEntry& entry, const std::string& where, std::span<float> out);

// Describes one tensor to write; `fill` puts its values into the given span when its turn comes.
struct TensorToWrite {
  std::string name;
  std::vector<int64_t> sizes;
  std::function<void(std::span<float>)> fill;
  std::string dtype = "F32";  // or "BF16": rounded to the nearest, of two equally near to the even one
};

// Writes one file by way of a temporary file beside it, fsync and rename. Throws RunError naming the path and the
// cause; then nothing is left behind.
void write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors);

}  // namespace collimate::model
