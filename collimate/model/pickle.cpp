#include "collimate/model/pickle.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <unordered_map>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"

namespace collimate::model {
namespace {

using base::expectation;
using base::InputError;

enum class Kind { kNone, kNumber, kText, kList, kDict, kCallable, kStorage, kTensor, kOther };

// Holds a value of a pickle. All values lie in the reader, so that cycles and deep nesting need no care.
struct Value {
  Kind kind = Kind::kNone;
  int64_t number = 0;
  std::string text;                 // of a text, a callable's name
  std::vector<const Value*> items;  // of a list or tuple; of a dictionary keys and values in turn
  PickledTensor tensor;             // of a tensor; of a storage its dtype and record
};

const std::map<std::string, std::string>& storage_dtypes() {
  static const std::map<std::string, std::string> kTypes = {
      {"torch FloatStorage", "F32"},  {"torch HalfStorage", "F16"}, {"torch BFloat16Storage", "BF16"},
      {"torch DoubleStorage", "F64"}, {"torch LongStorage", "I64"}, {"torch IntStorage", "I32"},
      {"torch ShortStorage", "I16"},  {"torch CharStorage", "I8"},  {"torch ByteStorage", "U8"},
      {"torch BoolStorage", "BOOL"}};
  return kTypes;
}

bool is_known(const std::string& callable) {
  for (const char* name :
       {"collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter"})
    if (callable == name) return true;
  return storage_dtypes().contains(callable);
}

class Reader {
 public:
  Reader(std::span<const std::byte> text, const std::string& where) : text_(text), where_(where) {}

  std::vector<PickledTensor> read() {
    while (step(static_cast<uint8_t>(take(1)[0]))) {
    }
    const Value& top = *pop();
    if (top.kind != Kind::kDict) refuse("a dictionary of tensors", "something else");
    std::vector<PickledTensor> tensors;
    for (size_t i = 0; i + 1 < top.items.size(); i += 2) {
      if (top.items[i]->kind != Kind::kText || top.items[i + 1]->kind != Kind::kTensor)
        refuse("a dictionary from names to tensors", "another value in it");
      tensors.push_back(top.items[i + 1]->tensor);
      tensors.back().name = top.items[i]->text;
    }
    return tensors;
  }

 private:
  // An operation of the pickle language and its code.
  struct Operation {
    uint8_t code;
    void (*run)(Reader& r);
  };
  static const Operation kOperations[];

  // Does one operation; returns false at the end.
  bool step(uint8_t code);

  void push_named() {
    const std::string module = line();
    push_callable(module + " " + line());
  }
  void join_callable(const std::vector<Value*>& names) { push_callable(names[0]->text + " " + names[1]->text); }
  void call(const std::vector<Value*>& call) { push(result_of(*call[0], *call[1])); }

  // Pushes the storage that a persistent id stands for: ('storage', type, key, device, elements).
  void push_storage(const Value& id) {
    const bool good = id.kind == Kind::kList && id.items.size() == 5 && id.items[0]->text == "storage" &&
                      id.items[1]->kind == Kind::kCallable && storage_dtypes().contains(id.items[1]->text) &&
                      id.items[2]->kind == Kind::kText;
    if (!good) refuse("storages of torch", "another persistent object");
    Value storage{Kind::kStorage};
    storage.tensor.dtype = storage_dtypes().at(id.items[1]->text);
    storage.tensor.record = id.items[2]->text;
    push(std::move(storage));
  }

  Value result_of(const Value& callable, const Value& arguments) {
    if (callable.kind != Kind::kCallable || arguments.kind != Kind::kList) refuse("calls that make tensors", "another");
    const std::vector<const Value*>& given = arguments.items;
    if (callable.text == "collections OrderedDict" && given.empty()) return {Kind::kDict};
    if (callable.text == "torch._utils _rebuild_parameter" && !given.empty() && given[0]->kind == Kind::kTensor)
      return *given[0];
    if (callable.text == "torch._utils _rebuild_tensor_v2") return tensor_of(given);
    refuse("calls that make tensors", callable.text + " with other arguments");
  }

  // Makes a tensor from the arguments of _rebuild_tensor_v2: (storage, offset, sizes, strides, …).
  Value tensor_of(const std::vector<const Value*>& given) {
    const bool good = given.size() >= 4 && given[0]->kind == Kind::kStorage && given[1]->kind == Kind::kNumber &&
                      given[2]->kind == Kind::kList && given[3]->kind == Kind::kList &&
                      given[2]->items.size() == given[3]->items.size() && given[2]->items.size() <= 16;
    if (!good) refuse("tensors of a storage with an offset, sizes and strides", "another");
    Value made{Kind::kTensor};
    made.tensor = given[0]->tensor;
    made.tensor.offset = natural(*given[1]);
    for (const Value* size : given[2]->items) made.tensor.sizes.push_back(natural(*size));
    for (const Value* stride : given[3]->items) made.tensor.strides.push_back(natural(*stride));
    return made;
  }

  int64_t natural(const Value& value) const {
    if (value.kind != Kind::kNumber || value.number < 0)
      refuse("sizes, strides and offsets from 0 on", "another value");
    return value.number;
  }

  void append(const std::vector<Value*>& more) {
    Value* list = top();
    if (list->kind != Kind::kList) refuse("a list to append to", "something else");
    list->items.insert(list->items.end(), more.begin(), more.end());
  }
  void set_items(const std::vector<Value*>& more) {
    Value* dict = top();
    if (dict->kind != Kind::kDict || more.size() % 2 != 0)
      refuse("a dictionary with keys and values", "something else");
    dict->items.insert(dict->items.end(), more.begin(), more.end());
  }

  Value* push(Value value) {
    values_.push_back(std::move(value));
    stack_.push_back(&values_.back());
    return stack_.back();
  }
  void push_number(int64_t number) { push({Kind::kNumber, number}); }
  void push_text(uint64_t bytes) {
    const std::span<const std::byte> text = take(bytes);
    push({Kind::kText, 0, std::string(reinterpret_cast<const char*>(text.data()), text.size())});
  }
  void push_callable(const std::string& name) {
    if (!is_known(name))
      refuse("only what a state dict of tensors needs",
             fmt::format("'{}', which would be executed", base::beginning_of(name, 80)),
             "model.safetensors of the same model");
    push({Kind::kCallable, 0, name});
  }
  // Pushes a little-endian number of at most 8 bytes.
  void push_long(uint8_t bytes) {
    if (bytes > 8) refuse("numbers of at most 64 bits", fmt::format("{} bytes", bytes));
    const std::span<const std::byte> text = take(bytes);
    uint64_t number = bytes > 0 && (static_cast<uint8_t>(text.back()) & 0x80U) != 0 ? ~uint64_t{0} : 0;
    for (size_t i = bytes; i-- > 0;) number = number << 8 | static_cast<uint8_t>(text[i]);
    push_number(static_cast<int64_t>(number));
  }
  void push_list(const std::vector<Value*>& items) { push({Kind::kList, 0, "", {items.begin(), items.end()}}); }

  Value* top() const {
    if (stack_.empty()) refuse("a value on the stack", "none");
    return stack_.back();
  }
  Value* pop() { return last(1)[0]; }
  // Takes the last values, in their order.
  std::vector<Value*> last(size_t count) {
    const size_t least = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() < least + count) refuse(fmt::format("{} values on the stack", count), "fewer");
    const auto first = stack_.end() - static_cast<int64_t>(count);
    std::vector<Value*> taken(first, stack_.end());
    stack_.erase(first, stack_.end());
    return taken;
  }
  std::vector<Value*> since_mark() {
    if (marks_.empty()) refuse("a mark", "none");
    const size_t count = stack_.size() - marks_.back();
    std::vector<Value*> taken = last(count);
    marks_.pop_back();
    return taken;
  }
  void recall(uint32_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) refuse("a value that was kept", fmt::format("number {}", number));
    stack_.push_back(found->second);
  }

  std::span<const std::byte> take(uint64_t bytes) {
    if (bytes > text_.size() - at_) refuse(fmt::format("{} more bytes", bytes), fmt::format("{}", text_.size() - at_));
    const auto taken = text_.subspan(at_, bytes);
    at_ += bytes;
    return taken;
  }
  template <typename Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof(Number)).data(), sizeof(Number));
    return value;
  }
  std::string line() {
    std::string text;
    for (char c = number<char>(); c != '\n'; c = number<char>()) text += c;
    return text;
  }

  [[noreturn]] void refuse(const std::string& expected, const std::string& got, const std::string& remedy = "") const {
    throw InputError(expectation(where_, expected, got, remedy));
  }

  std::span<const std::byte> text_;
  const std::string& where_;
  size_t at_ = 0;
  std::deque<Value> values_;
  std::vector<Value*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, Value*> memo_;
};

const Reader::Operation Reader::kOperations[] = {
    {0x80, [](Reader& r) { r.take(1); }},  // protocol
    {0x95, [](Reader& r) { r.take(8); }},  // frame
    {'N', [](Reader& r) { r.push({}); }},
    {0x88, [](Reader& r) { r.push_number(1); }},
    {0x89, [](Reader& r) { r.push_number(0); }},
    {'J', [](Reader& r) { r.push_number(r.number<int32_t>()); }},
    {'K', [](Reader& r) { r.push_number(r.number<uint8_t>()); }},
    {'M', [](Reader& r) { r.push_number(r.number<uint16_t>()); }},
    {0x8a, [](Reader& r) { r.push_long(r.number<uint8_t>()); }},
    {'G', [](Reader& r) { r.take(8), r.push({Kind::kOther}); }},  // a float
    {'X', [](Reader& r) { r.push_text(r.number<uint32_t>()); }},
    {0x8c, [](Reader& r) { r.push_text(r.number<uint8_t>()); }},
    {'(', [](Reader& r) { r.marks_.push_back(r.stack_.size()); }},
    {'}', [](Reader& r) { r.push({Kind::kDict}); }},
    {']', [](Reader& r) { r.push({Kind::kList}); }},
    {')', [](Reader& r) { r.push({Kind::kList}); }},
    {'t', [](Reader& r) { r.push_list(r.since_mark()); }},
    {0x85, [](Reader& r) { r.push_list(r.last(1)); }},
    {0x86, [](Reader& r) { r.push_list(r.last(2)); }},
    {0x87, [](Reader& r) { r.push_list(r.last(3)); }},
    {'a', [](Reader& r) { r.append(r.last(1)); }},
    {'e', [](Reader& r) { r.append(r.since_mark()); }},
    {'s', [](Reader& r) { r.set_items(r.last(2)); }},
    {'u', [](Reader& r) { r.set_items(r.since_mark()); }},
    {'q', [](Reader& r) { r.memo_[r.number<uint8_t>()] = r.top(); }},
    {'r', [](Reader& r) { r.memo_[r.number<uint32_t>()] = r.top(); }},
    {0x94, [](Reader& r) { r.memo_[static_cast<uint32_t>(r.memo_.size())] = r.top(); }},
    {'h', [](Reader& r) { r.recall(r.number<uint8_t>()); }},
    {'j', [](Reader& r) { r.recall(r.number<uint32_t>()); }},
    {'c', [](Reader& r) { r.push_named(); }},
    {0x93, [](Reader& r) { r.join_callable(r.last(2)); }},
    {'Q', [](Reader& r) { r.push_storage(*r.pop()); }},
    {'R', [](Reader& r) { r.call(r.last(2)); }},
    {'b', [](Reader& r) { r.pop(); }},  // attributes of an object, as _metadata of a state dict
};

bool Reader::step(uint8_t code) {
  if (code == '.') return false;
  const auto* found = std::ranges::find(kOperations, code, &Operation::code);
  if (found == std::end(kOperations)) refuse("operations of a state dict", fmt::format("operation 0x{:02x}", code));
  found->run(*this);
  return true;
}

}  // namespace

std::vector<PickledTensor> read_pickled_tensors(std::span<const std::byte> text, const std::string& where) {
  return Reader(text, where).read();
}

}  // namespace collimate::model
