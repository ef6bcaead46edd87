#include "tests/support/checked_device.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "collimate/tensor/allocator.h"
#include "collimate/tensor/operations.h"
#include "collimate/tensor/pending.h"

namespace collimate::test {
namespace {

constexpr size_t kReserved = size_t{1} << 36;  // addresses, not memory
constexpr size_t kPage = 1 << 12, kHugePage = 1 << 21;

// A range of addresses, readable and writable while an operation runs.
class Region {
 public:
  Region() {
    void* at = ::mmap(nullptr, kReserved + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error("no addresses for the checked device");
    begin_ = static_cast<char*>(at) + (kHugePage - reinterpret_cast<uintptr_t>(at) % kHugePage);
    ::madvise(begin_, kReserved, MADV_HUGEPAGE);  // to open and close it is quick then
  }

  void open() {
    const std::lock_guard lock(mutex_);
    if (running_++ == 0) protect_all(PROT_READ | PROT_WRITE);
  }
  void close() {
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) protect_all(PROT_NONE);
  }

  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes = (bytes + kPage - 1) / kPage * kPage;
    // Opening and closing cost by what is used, so that a somewhat larger block serves rather than a new one.
    if (const auto freed = freed_.lower_bound(bytes); freed != freed_.end() && freed->first <= 2 * bytes)
      return freed_.extract(freed).mapped();
    if (used_ + bytes > kReserved) throw std::runtime_error("the checked device is full");
    void* block = begin_ + used_;
    used_ += bytes;
    if (running_ > 0) protect_all(PROT_READ | PROT_WRITE);
    sizes_[block] = bytes;
    return block;
  }
  void give_back(void* block) {
    const std::lock_guard lock(mutex_);
    freed_.emplace(sizes_.at(block), block);
  }
  bool holds(const void* address) const { return address >= begin_ && address < begin_ + kReserved; }

 private:
  void protect_all(int allowed) { ::mprotect(begin_, (used_ + kHugePage - 1) / kHugePage * kHugePage, allowed); }

  std::mutex mutex_;
  char* begin_ = nullptr;
  size_t used_ = 0;
  int running_ = 0;                          // operations
  std::multimap<size_t, void*> freed_;       // by size
  std::unordered_map<void*, size_t> sizes_;  // of a block
};

Region& region() {
  static auto* instance = new Region;  // outlives every buffer
  return *instance;
}

struct Open {
  Open() { region().open(); }
  ~Open() { region().close(); }
};

// Places in the list of operations.
enum class Operation : size_t {
#define COLLIMATE_PLACE(name) name,
  COLLIMATE_OPERATIONS(COLLIMATE_PLACE)
#undef COLLIMATE_PLACE
};
constexpr const char* kNames[] = {
#define COLLIMATE_NAME(name) #name,
    COLLIMATE_OPERATIONS(COLLIMATE_NAME)
#undef COLLIMATE_NAME
};

void expect_here(const char* what, const void* address) {
  if (address != nullptr && !region().holds(address))
    throw std::logic_error(std::string("checked device: ") + what + " was given memory of the host");
}

// Where the numbers lie that arguments point to. Results that the host reads, such as those of a draw, are not named.
template <class... Addresses>
auto addresses(Addresses... all) {
  return std::to_array<const void*>({all...});
}
template <class Data>
auto pointers_of(const tensor::HeadsAt<Data>& a) {
  return addresses(a.data);
}
auto pointers_of(const tensor::AttentionRun& a) { return addresses(a.blocks); }
auto pointers_of(const tensor::AttentionForward& a) { return addresses(a.q, a.storage, a.out, a.lse); }
auto pointers_of(const tensor::AttentionBackward& a) {
  return addresses(a.q, a.k, a.v, a.out, a.dout, a.lse, a.dq, a.dk, a.dv);
}
auto pointers_of(const tensor::Dropout& a) { return addresses(a.keys); }
auto pointers_of(const tensor::Routed& a) { return addresses(a.scores, a.choices, a.weights, a.log_sums); }
auto pointers_of(const tensor::RecordedChoices& a) { return addresses(a.choices, a.differ); }
auto pointers_of(const tensor::LoadSlopes& a) { return addresses(a.counts, a.scores); }
auto pointers_of(const tensor::ExpertRows& a) { return addresses(a.starts, a.tokens, a.places); }
auto pointers_of(const tensor::Combination& a) { return addresses(a.places, a.weights); }
auto pointers_of(const tensor::LinearPanels& a) { return addresses(a.data, a.scales); }
auto pointers_of(const tensor::LinearOptions& a) { return addresses(a.bias); }
auto pointers_of(const tensor::LogProbHead& a) { return addresses(a.hidden, a.head->data, a.bias, a.targets); }
auto pointers_of(const tensor::LogProbOutput& a) {
  return addresses(a.log_prob, a.logsumexp, a.entropy, a.argmax, a.top, a.max, a.log_sum, a.logits);
}
auto pointers_of(const tensor::PartLogits& a) { return addresses(a.logits, a.max, a.argmax, a.target); }
auto pointers_of(const tensor::LogProbForward& a) { return addresses(a.max, a.log_sum, a.entropy, a.logits); }
auto pointers_of(const tensor::LogProbGrad& a) {
  return addresses(a.dlog_prob, a.dentropy, a.w, a.dhidden, a.dw, a.dbias);
}
auto pointers_of(const tensor::RopeTable& a) { return addresses(a.cos, a.sin); }
auto pointers_of(const tensor::Draw& a) { return addresses(a.logits); }

template <class T>
void check(const char* what, const T&);
// Sums of squares go to the host.
inline void check(const char*, double*) {}
template <class T>
void check(const char* what, T* numbers) {
  if constexpr (std::is_class_v<T>)
    check(what, *numbers);
  else
    expect_here(what, numbers);
}
// Lists of numbers are the host's; those of structs and of pointers may point to numbers of the device.
template <class T>
void check(const char* what, std::span<T> values) {
  if constexpr (!std::is_arithmetic_v<T>)
    for (T& value : values) check(what, value);
}
template <class T>
void check(const char* what, const T& value) {
  if constexpr (requires { pointers_of(value); })
    for (const void* address : pointers_of(value)) expect_here(what, address);
}

// An operation of the CPU that has the region open while it runs, and is given no memory of the host.
template <Operation operation, auto Function>
struct Opening;
template <Operation operation, class Result, class... Arguments, Result (*Function)(Arguments...)>
struct Opening<operation, Function> {
  static Result run(Arguments... arguments) {
    const char* what = kNames[static_cast<size_t>(operation)];
    (check(what, arguments), ...);
    const Open open;
    return Function(std::forward<Arguments>(arguments)...);
  }
};
void copy_open(const void* from, int64_t bytes, void* to) {
  const Open open;
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}
template <>
struct Opening<Operation::copy_in, &tensor::cpu::copy_in> {
  static void run(const tensor::Exec&, const void* host, int64_t bytes, void* device) {
    expect_here("copy_in", device);
    copy_open(host, bytes, device);
  }
};
template <>
struct Opening<Operation::copy_out, &tensor::cpu::copy_out> {
  static void run(const tensor::Exec&, const void* device, int64_t bytes, void* host) {
    expect_here("copy_out", device);
    copy_open(device, bytes, host);
  }
};

class Checked final : public tensor::Device {
 public:
  std::string_view name() const override { return "checked"; }
  const tensor::Operations& operations() const override {
#define COLLIMATE_CHECKED(name) .name = &Opening<Operation::name, &tensor::cpu::name>::run,
    static constexpr tensor::Operations kOperations = {COLLIMATE_OPERATIONS(COLLIMATE_CHECKED)};
#undef COLLIMATE_CHECKED
    return kOperations;
  }

  void* take(int64_t bytes) const override {
    const int tag = tensor::count_block(bytes);
    void* block = region().take(static_cast<size_t>(bytes));
    const std::lock_guard lock(mutex_);
    counted_[block] = {tag, bytes};
    return block;
  }
  void give_back(void* block, bool) const noexcept override {
    {
      const std::lock_guard lock(mutex_);
      const auto [tag, bytes] = counted_.at(block);
      tensor::uncount_block(tag, bytes);
    }
    region().give_back(block);
  }

  void* open(tensor::Stream*, void* bytes, int64_t count, bool) const override {
    expect_here("a view", bytes);
    void* copy = ::operator new(static_cast<size_t>(count), kAligned);
    const Open open;
    std::memcpy(copy, bytes, static_cast<size_t>(count));
    return copy;
  }
  void close(tensor::Stream*, void* bytes, int64_t count, bool write, void* opened) const noexcept override {
    if (write) {
      const Open open;
      std::memcpy(bytes, opened, static_cast<size_t>(count));
    }
    ::operator delete(opened, kAligned);
  }
  void follow(tensor::Stream*, const tensor::Pending& work, double deadline_seconds) const override {
    work.wait(deadline_seconds);
  }
  bool reads_host_memory() const override { return false; }

 private:
  static constexpr std::align_val_t kAligned{64};
  mutable std::mutex mutex_;
  mutable std::unordered_map<void*, std::pair<int, int64_t>> counted_;  // tag and bytes
};

void say(const char* words) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, words, std::strlen(words));
  void* frames[32];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 32), STDERR_FILENO);
}

void say_where(int signal, siginfo_t* info, void*) {
  if (region().holds(info->si_addr))
    say("checked device: the host touched a device's memory outside an operation, in\n");
  std::signal(signal, SIG_DFL);  // and the faulting instruction runs again
}

// ATen's operations on tensors of the device: what they make lies there too, and while one runs all is open.
thread_local int t_on_device = 0;
struct OnDevice : at::ObserverContext {};

bool is_here(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() && region().holds(tensor.storage().data());
}

bool is_here(const c10::IValue& input) {
  if (input.isTensor()) return is_here(input.toTensor());
  if (!input.isTensorList()) return false;
  const std::vector<at::Tensor> list = input.toTensorVector();
  return std::any_of(list.begin(), list.end(), [](const at::Tensor& tensor) { return is_here(tensor); });
}

std::unique_ptr<at::ObserverContext> begin_of_aten(const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  if (std::none_of(inputs.begin(), inputs.end(), [](const c10::IValue& input) { return is_here(input); }))
    return nullptr;
  region().open();
  ++t_on_device;
  return std::make_unique<OnDevice>();
}

void end_of_aten(const at::RecordFunction&, at::ObserverContext* context) {
  if (context == nullptr) return;
  --t_on_device;
  region().close();
}

// The allocator of ATen's tensors, which to ATen are all the CPU's.
class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device to_aten(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, to_aten};
    if (t_on_device == 0) {
      void* block = tensor::allocate(static_cast<int64_t>(bytes));
      return {block, block, &tensor::deallocate, to_aten};
    }
    void* block = checked_device().take(static_cast<int64_t>(bytes));
    return {block, block, &free, to_aten};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }

 private:
  static void free(void* block) {
    if (region().holds(block))
      checked_device().give_back(block, true);
    else
      tensor::deallocate(block);
  }
};

void watch_aten() {
  at::addGlobalCallback(
      at::RecordFunctionCallback(&begin_of_aten, &end_of_aten).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  c10::SetCPUAllocator(new Allocator, 255);
}

bool is_asked_for() {
  const char* wanted = std::getenv("COLLIMATE_TEST_DEVICE");
  return wanted != nullptr && std::strcmp(wanted, "checked") == 0;
}

}  // namespace

const tensor::Device& checked_device() {
  static const tensor::Device* device = [] {
    void* frames[1];
    ::backtrace(frames, 1);  // loads what the handler needs
    struct sigaction action = {};
    action.sa_sigaction = say_where;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, nullptr);
    watch_aten();
    return new Checked;
  }();
  return *device;
}

}  // namespace collimate::test

namespace collimate::tensor {

const Device& default_device() {
  static const Device& device = test::is_asked_for() ? test::checked_device() : cpu_device();
  return device;
}

}  // namespace collimate::tensor
