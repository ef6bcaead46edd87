#include "collimate/cluster/local/thread_worker.h"

#include <thread>

namespace collimate::cluster {
namespace {

class ThreadWorker final : public WorkerLink {
 public:
  ThreadWorker(const WorkerSpec& spec, HandlerFactory make, size_t capacity, Mailbox& driver)
      : spec_(spec), make_(std::move(make)), inbox_(capacity) {
    inbox_.on_space([&driver] { driver.poke(); });
    thread_ = std::thread([this, &driver] { Worker(spec_, make_, inbox_, driver).run(); });
  }
  ~ThreadWorker() override { ThreadWorker::stop(0); }

  int rank() const override { return spec_.rank; }
  uint64_t incarnation() const override { return spec_.incarnation; }
  Mailbox& inbox() override { return inbox_; }
  // A thread cannot be killed: waits for the message it is in, however long that takes.
  void stop(double) override {
    inbox_.close();
    if (thread_.joinable()) thread_.join();
  }
  std::string describe() const override { return "thread of this process"; }

 private:
  WorkerSpec spec_;
  HandlerFactory make_;
  Mailbox inbox_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<WorkerLink> start_thread_worker(const WorkerSpec& spec, HandlerFactory make, size_t capacity,
                                                Mailbox& driver) {
  return std::make_unique<ThreadWorker>(spec, std::move(make), capacity, driver);
}

}  // namespace collimate::cluster
