#include "collimate/text/rendered_rows.h"

#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::text {
namespace {

void put(std::string& out, int64_t number) { out.append(reinterpret_cast<const char*>(&number), sizeof number); }

template <class T>
void put(std::string& out, const std::vector<T>& values) {
  put(out, std::ssize(values));
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Takes what put() has written, in its order.
class Record {
 public:
  explicit Record(std::string_view bytes) : left_(bytes) {}

  int64_t number() {
    int64_t value = 0;
    take(&value, sizeof value);
    return value;
  }
  template <class T>
  std::vector<T> list() {
    std::vector<T> values(static_cast<size_t>(number()));
    take(values.data(), values.size() * sizeof(T));
    return values;
  }

 private:
  void take(void* to, size_t bytes) {
    COLLIMATE_CHECK(bytes <= left_.size(), "{} bytes of a record with {} left", bytes, left_.size());
    if (bytes > 0) std::memcpy(to, left_.data(), bytes);
    left_.remove_prefix(bytes);
  }

  std::string_view left_;
};

// The rows go as they are in memory, the JSON as CBOR, which keeps every number.
std::string bytes_of(const RenderedExample& example) {
  std::string out;
  for (const int64_t number : {example.row, example.file, example.line, example.row_in_file,
                               int64_t{example.desirable ? 1 : 0}, static_cast<int64_t>(example.rows.size())})
    put(out, number);
  for (const RenderedTokens& row : example.rows) {
    put(out, row.prompt_tokens);
    put(out, int64_t{row.cut ? 1 : 0});
    put(out, row.ids);
    put(out, row.trainable);
  }
  put(out, example.right);
  put(out, nlohmann::json::to_cbor(example.example));
  return out;
}

RenderedExample example_of(Record record) {
  RenderedExample out;
  for (int64_t* number : {&out.row, &out.file, &out.line, &out.row_in_file}) *number = record.number();
  out.desirable = record.number() != 0;
  out.rows.resize(static_cast<size_t>(record.number()));
  for (RenderedTokens& row : out.rows) {
    row.prompt_tokens = record.number();
    row.cut = record.number() != 0;
    row.ids = record.list<int32_t>();
    row.trainable = record.list<uint8_t>();
  }
  out.right = record.list<uint8_t>();
  out.example = nlohmann::json::from_cbor(record.list<uint8_t>());
  return out;
}

}  // namespace

RenderedRows::RenderedRows(bool in_memory) : file_(in_memory ? nullptr : std::make_unique<host::ScratchFile>("rows")) {}

void RenderedRows::add(RenderedExample&& example) {
  if (!file_) return held_.push_back(std::move(example));
  const std::string bytes = bytes_of(example);
  begins_.push_back(file_->append(std::as_bytes(std::span(bytes))));
}

int64_t RenderedRows::size() const { return file_ ? std::ssize(begins_) : std::ssize(held_); }

RenderedExample RenderedRows::at(int64_t example) const {
  COLLIMATE_CHECK(example >= 0 && example < size(), "example {} of {}", example, size());
  if (!file_) return base::at(held_, example);
  const auto index = static_cast<size_t>(example);
  const int64_t begin = begins_[index], end = index + 1 < begins_.size() ? begins_[index + 1] : file_->size();
  std::string bytes(static_cast<size_t>(end - begin), '\0');
  file_->read(begin, std::as_writable_bytes(std::span(bytes)));
  return example_of(Record(bytes));
}

}  // namespace collimate::text
