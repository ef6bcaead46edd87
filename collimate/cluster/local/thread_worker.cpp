#include "collimate/cluster/local/thread_worker.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace collimate::cluster {
namespace {

// A Running holds all that the thread uses. The thread shares it, so that an abandoned thread does no harm.
struct Running {
  Running(const WorkerSpec& worker_spec, HandlerFactory make_handler, size_t capacity, std::shared_ptr<Mailbox> to)
      : spec(worker_spec), make(std::move(make_handler)), inbox(capacity), driver(std::move(to)) {}
  const WorkerSpec spec;
  const HandlerFactory make;
  Mailbox inbox;
  const std::shared_ptr<Mailbox> driver;
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
};

void run(const std::shared_ptr<Running>& running) {
  Worker(running->spec, running->make, running->inbox, *running->driver).run();
  std::lock_guard lock(running->mutex);
  running->ended = true;
  running->changed.notify_all();
}

class ThreadWorker final : public WorkerLink {
 public:
  explicit ThreadWorker(std::shared_ptr<Running> running) : running_(std::move(running)) {
    running_->inbox.on_space([driver = running_->driver.get()] { driver->poke(); });
    thread_ = std::thread([running = running_] { run(running); });
  }
  ~ThreadWorker() override { ThreadWorker::stop(10.0); }

  int rank() const override { return running_->spec.rank; }
  uint64_t incarnation() const override { return running_->spec.incarnation; }
  Mailbox& inbox() override { return running_->inbox; }
  void stop(double seconds) override {
    running_->inbox.close();
    if (!thread_.joinable()) return;
    std::unique_lock lock(running_->mutex);
    bool ended =
        running_->changed.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return running_->ended; });
    lock.unlock();
    ended ? thread_.join() : thread_.detach();
  }
  std::string describe() const override { return "thread of this process"; }

 private:
  std::shared_ptr<Running> running_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<WorkerLink> start_thread_worker(const WorkerSpec& spec, HandlerFactory make, size_t capacity,
                                                std::shared_ptr<Mailbox> driver) {
  return std::make_unique<ThreadWorker>(std::make_shared<Running>(spec, std::move(make), capacity, std::move(driver)));
}

}  // namespace collimate::cluster
