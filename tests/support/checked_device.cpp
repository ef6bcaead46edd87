#include "tests/support/checked_device.h"

#include <ATen/record_function.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "collimate/tensor/allocator.h"
#include "collimate/tensor/operations.h"
#include "collimate/tensor/pending.h"

namespace collimate::test {
namespace {

constexpr size_t kReserved = size_t{1} << 36;  // addresses, not memory
constexpr size_t kPage = 1 << 12, kHugePage = 1 << 21;

// A range of addresses, readable and writable while an operation runs or a view lives.
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
  int running_ = 0;                          // operations and views
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

// ATen's own operations read what a model returns: while one runs, all is open too.
void open_for_aten() {
  at::addGlobalCallback(at::RecordFunctionCallback(
      [](const at::RecordFunction&) {
        region().open();
        return std::unique_ptr<at::ObserverContext>();
      },
      [](const at::RecordFunction&, at::ObserverContext*) { region().close(); }));
}

// An operation of the CPU that has the region open while it runs.
template <auto Function>
struct Opening;
template <class Result, class... Arguments, Result (*Function)(Arguments...)>
struct Opening<Function> {
  static Result run(Arguments... arguments) {
    const Open open;
    return Function(std::forward<Arguments>(arguments)...);
  }
};

class Checked final : public tensor::Device {
 public:
  std::string_view name() const override { return "checked"; }
  const tensor::Operations& operations() const override {
#define COLLIMATE_CHECKED(name) .name = &Opening<&tensor::cpu::name>::run,
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

  void* open(tensor::Stream*, void* bytes, int64_t, bool) const override {
    region().open();
    return bytes;
  }
  void close(tensor::Stream*, void*, int64_t, bool, void*) const noexcept override { region().close(); }
  void follow(tensor::Stream*, const tensor::Pending& work, double deadline_seconds) const override {
    work.wait(deadline_seconds);
  }
  bool reads_host_memory() const override { return true; }

 private:
  mutable std::mutex mutex_;
  mutable std::unordered_map<void*, std::pair<int, int64_t>> counted_;  // tag and bytes
};

void say_where(int signal, siginfo_t* info, void*) {
  if (region().holds(info->si_addr)) {
    constexpr char kWords[] = "checked device: the host touched a device's memory outside an operation, in\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kWords, sizeof(kWords) - 1);
    void* frames[32];
    ::backtrace_symbols_fd(frames, ::backtrace(frames, 32), STDERR_FILENO);
  }
  std::signal(signal, SIG_DFL);  // and the faulting instruction runs again
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
    open_for_aten();
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
