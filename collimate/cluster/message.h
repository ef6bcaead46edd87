#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "collimate/base/fields.h"

namespace collimate::cluster {

using Bytes = std::vector<std::byte>;

// A Wire is a message on the wire: one JSON header and raw frames.
struct Wire {
  nlohmann::json header;
  std::vector<Bytes> frames;
};

// FrameForm<T> stands beside a type that is sent as raw frames instead of JSON. Its static `write(const T&,
// std::vector<Bytes>&)` appends the frames and returns JSON that describes them. Its static `read(const
// nlohmann::json&, NextFrame)` makes the value again and throws when it cannot.
template <class T>
struct FrameForm;
using NextFrame = std::function<Bytes()>;  // throws when none is left
template <class T>
concept HasFrameForm = requires(const T& value, std::vector<Bytes>& frames) {
  FrameForm<T>::write(value, frames);
};

// A Content is the content of a message: a struct with the name of its kind, `kKind`, and a list of its fields
// (base/fields.h). Between threads the struct itself is moved; between processes it is sent as a Wire.
class Content {
 public:
  virtual ~Content() = default;
  virtual std::string_view kind() const = 0;
  virtual Wire to_wire() const = 0;
};

template <class T>
class ContentOf final : public Content {
 public:
  explicit ContentOf(T of) : value(std::move(of)) {}
  std::string_view kind() const override { return T::kKind; }
  Wire to_wire() const override {
    Wire wire;
    wire.header["kind"] = T::kKind;
    T::fields(value, [&]<class Field>(const char* name, const Field& field, const auto&...) {
      if constexpr (HasFrameForm<Field>)
        wire.header[name] = FrameForm<Field>::write(field, wire.frames);
      else
        wire.header[name] = field;
    });
    return wire;
  }

  T value;
};

// A Message has either a content (it came from a thread of this process) or the Wire that it came as.
struct Message {
  std::unique_ptr<Content> content;
  Wire wire;
  int sender = -1;           // rank of the worker; -1 is the driver
  uint64_t incarnation = 0;  // of the worker that sends or receives it

  std::string kind() const;  // "" when the wire has none
};

template <class T>
Message message_of(T content, uint64_t incarnation = 0) {
  Message message;
  message.content = std::make_unique<ContentOf<T>>(std::move(content));
  message.incarnation = incarnation;
  return message;
}

Wire to_wire(const Message& message);
// Reads a message from the wire. Throws RunError when the header is not what to_wire writes.
Message from_wire(Wire wire);

// A ContentReader reads the content of a message that came over a wire, field by field. Throws RunError naming the
// kind, the field and the sender for a field that is absent or cannot be read, and for frames that no field uses.
class ContentReader {
 public:
  explicit ContentReader(Message& message) : message_(message) {}

  template <class T>
  T read() {
    T content{};
    T::fields(content, [&]<class Field>(const char* name, Field& field, const auto&...) {
      read_field(name, [&](const nlohmann::json& value) {
        if constexpr (HasFrameForm<Field>)
          field = FrameForm<Field>::read(value, [this] { return next_frame(); });
        else
          value.get_to(field);
      });
    });
    finish();
    return content;
  }

 private:
  void read_field(const char* name, const std::function<void(const nlohmann::json&)>& set) const;
  Bytes next_frame();
  void finish() const;

  Message& message_;
  size_t frames_read_ = 0;
};

[[noreturn]] void refuse_kind(const Message& message, const std::vector<std::string_view>& known);

// Returns the content as one of the structs of `Protocol`, a std::variant. Throws RunError, naming the sender, for any
// other kind, and where ContentReader does.
template <class Protocol>
Protocol content_of(Message message) {
  std::optional<Protocol> taken;
  const std::string kind = message.kind();
  const auto take_as = [&]<class T>(std::type_identity<T>) {
    if (kind != T::kKind) return false;
    auto* content = dynamic_cast<ContentOf<T>*>(message.content.get());
    taken.emplace(content != nullptr ? std::move(content->value) : ContentReader(message).template read<T>());
    return true;
  };
  [&]<class... Kinds>(std::type_identity<std::variant<Kinds...>>) {
    if (!(take_as(std::type_identity<Kinds>()) || ...)) refuse_kind(message, {Kinds::kKind...});
  }(std::type_identity<Protocol>());
  return *std::move(taken);
}

}  // namespace collimate::cluster
