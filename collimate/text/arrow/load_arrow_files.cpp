#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <streambuf>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/host/beside_libraries.h"
#include "collimate/text/arrow/arrow_files.h"

namespace collimate::text {
namespace {

// Maps each ending to Arrow's name of its codec.
const std::map<std::string, std::string>& codecs() {
  static const std::map<std::string, std::string> all = {
      {".gz", "gzip"}, {".zst", "zstd"}, {".bz2", "bz2"}, {".lz4", "lz4"}};
  return all;
}

std::string extension_of(const std::string& path) { return std::filesystem::path(path).extension().string(); }

// Returns an entry point of the library, which reads `what`. Throws InputError, which names the `reader` as missing,
// where there is no library.
template <class Function>
Function load(const char* name, const std::string& what, const std::string& reader) {
  void* handle = host::load_beside_libraries(
      kArrowLibrary, what, "a build with " + reader,
      "`pip install pyarrow` for the Python that the build uses and configure again, or convert the file to JSONL");
  void* symbol = dlsym(handle, name);
  COLLIMATE_CHECK(symbol != nullptr, "{} has no {}", kArrowLibrary, name);
  return reinterpret_cast<Function>(symbol);
}

void require_read(const std::string& error, const std::string& path, const std::string& expected) {
  if (!error.empty())
    throw base::InputError(base::expectation(path, expected, "a damaged one or another format (" + error + ")",
                                             "getting the file again, or its rows as JSON lines"));
}

// Reads a compressed file piece by piece.
class CompressedPieces {
 public:
  explicit CompressedPieces(std::string path)
      : path_(std::move(path)),
        expected_(fmt::format("a whole file compressed by {}", codecs().at(extension_of(path_)))) {
    static const auto open =
        load<OpenCompressedFunction>(kOpenCompressedSymbol, "compressed", "the readers of compressed files");
    require_read(open(path_, codecs().at(extension_of(path_)), next_), path_, expected_);
  }

  // Returns false at the end of the file.
  bool next(std::string& piece) const {
    require_read(next_(piece), path_, expected_);
    return !piece.empty();
  }

 private:
  std::string path_, expected_;
  NextPiece next_;
};

class CompressedBuffer : public std::streambuf {
 public:
  explicit CompressedBuffer(const std::string& path) : pieces_(path) {}

 protected:
  int_type underflow() override {
    more_ = more_ && pieces_.next(piece_);
    if (!more_) return traits_type::eof();
    setg(piece_.data(), piece_.data(), piece_.data() + piece_.size());
    return traits_type::to_int_type(piece_.front());
  }

 private:
  CompressedPieces pieces_;
  std::string piece_;
  bool more_ = true;
};

// Passes on what its buffer throws, as a stream does with exceptions(badbit).
class CompressedStream : public std::istream {
 public:
  explicit CompressedStream(const std::string& path) : std::istream(nullptr), buffer_(path) {
    rdbuf(&buffer_);
    exceptions(std::ios::badbit);
  }

 private:
  CompressedBuffer buffer_;
};

}  // namespace

void read_parquet(const std::string& path, const RowSink& sink) {
  static const auto read = load<ReadRowsFunction>(kReadParquetSymbol, "parquet", "the Parquet reader");
  require_read(read(path, sink), path, "a Parquet file that can be read");
}

void read_arrow(const std::string& path, const RowSink& sink) {
  static const auto read = load<ReadRowsFunction>(kReadArrowSymbol, "arrow", "the Arrow reader");
  require_read(read(path, sink), path, "an Arrow file that can be read");
}

bool is_compressed(const std::string& path) { return codecs().contains(extension_of(path)); }

std::unique_ptr<std::istream> open_compressed(const std::string& path) {
  return std::make_unique<CompressedStream>(path);
}

std::string decompressed(const std::string& path) {
  CompressedPieces pieces(path);
  std::string content, piece;
  while (pieces.next(piece)) content += piece;
  return content;
}

}  // namespace collimate::text
