#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/comm/group.h"

namespace collimate::comm {
namespace {

class NullGroup final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  tensor::Pending all_reduce(std::span<float>) override { return check(); }
  tensor::Pending all_reduce_max(std::span<float>) override { return check(); }
  tensor::Pending reduce_scatter(std::span<const float> all, std::span<float> mine) override {
    std::copy(all.begin(), all.end(), mine.begin());
    return check();
  }
  tensor::Pending all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::copy(mine.begin(), mine.end(), all.begin());
    return check();
  }
  tensor::Pending broadcast(std::span<std::byte>, int) override { return check(); }
  tensor::Pending all_to_all(std::span<const std::byte> out, std::span<std::byte> in) override {
    std::copy(out.begin(), out.end(), in.begin());
    return check();
  }
  tensor::Pending all_to_all(std::span<const std::byte> out, std::span<std::byte> in,
                             std::span<const size_t>) override {
    return all_to_all(out, in);
  }
  void send(std::span<const std::byte>, int to) override { nobody(to); }
  void receive(std::span<std::byte>, int from) override { nobody(from); }
  void barrier() override { check(); }
  void abort(const std::string& cause) override { cause_ = cause.empty() ? "aborted" : cause; }

 private:
  tensor::Pending check() const {
    if (!cause_.empty()) throw base::RunError("[group of one rank] " + cause_);
    return {};
  }
  [[noreturn]] static void nobody(int rank) {
    throw base::RunError(base::expectation("group of one rank", "a peer other than itself", std::to_string(rank)));
  }
  std::string cause_;
};

}  // namespace

std::unique_ptr<Group> null_group() { return std::make_unique<NullGroup>(); }

}  // namespace collimate::comm
