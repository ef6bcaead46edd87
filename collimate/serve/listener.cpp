#include "collimate/serve/listener.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/queue.h"

namespace collimate::serve {
namespace {

constexpr int kBacklog = 1024;
constexpr double kGraceSeconds = 1;  // how long an idle connection may stay while another one waits for a thread

thread_local Connection* current_connection = nullptr;

// Tasks are threads that take tasks from a bounded queue.
class Tasks : public httplib::TaskQueue {
 public:
  Tasks(int64_t threads, std::atomic<int64_t>& waiting, std::atomic<int64_t>& serving)
      : waiting_(waiting),
        serving_(serving),
        queue_(static_cast<size_t>(threads), {"connections", "the threads", "the listener"}) {
    for (int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  void enqueue(std::function<void()> task) override {
    ++waiting_;
    queue_.push(std::move(task), base::Deadline::never());
  }
  void shutdown() override {
    queue_.close();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void work() {
    while (auto task = queue_.pop(base::Deadline::never())) {
      ++serving_;
      --waiting_;
      (*task)();
      --serving_;
    }
  }

  std::atomic<int64_t>& waiting_;
  std::atomic<int64_t>& serving_;
  base::Queue<std::function<void()>> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace

Listener::Listener(ListenerOptions options) : options_(options) {
  new_task_queue = [this] { return new Tasks(options_.connections, waiting_, serving_); };
  set_socket_options([](socket_t socket) {
    const int on = 1;  // httplib's default would silently share the port with another server
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
}

int Listener::open(const std::string& host, int port) {
  const int bound = port == 0 ? bind_to_any_port(host) : (bind_to_port(host, port) ? port : -1);
  if (bound < 0) {
    throw base::InputError(base::expectation("serve", "a free address",
                                             fmt::format("{}:{}: {}", host, port, strerror(errno)),
                                             "another port; 0 takes a free one"));
  }
  ::listen(svr_sock_, kBacklog);  // again, because httplib asks for a backlog of 5
  return bound;
}

void Listener::accept_all() { listen_after_bind(); }

// Closes the listening socket only. httplib's stop() would also cut answers that are being streamed.
void Listener::close() {
  closing_ = true;
  ::shutdown(svr_sock_, SHUT_RDWR);
}

void Listener::cut() {
  const std::lock_guard lock(mutex_);
  for (const socket_t socket : open_) ::shutdown(socket, SHUT_RDWR);
}

int64_t Listener::connections() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(open_.size());
}

Connection& Listener::current() {
  COLLIMATE_CHECK(current_connection != nullptr, "no request is being handled in this thread");
  return *current_connection;
}

bool Listener::process_and_close_socket(socket_t socket) {
  {
    const std::lock_guard lock(mutex_);
    open_.insert(socket);
  }
  Connection connection(socket, options_.connection);
  current_connection = &connection;
  try {
    serve(connection);
    if (connection.dirty() && !closing_) connection.linger();
  } catch (const std::exception& error) {
    base::log_warning("a connection failed: {}", error.what());
  }
  current_connection = nullptr;
  const std::lock_guard lock(mutex_);
  open_.erase(socket);
  ::close(socket);
  return true;
}

void Listener::serve(Connection& connection) {
  const auto leave = [&](double waited_seconds) {
    const bool crowded = waiting_ > 0 && serving_ >= options_.connections;
    return closing_ || (crowded && waited_seconds > kGraceSeconds);
  };
  const auto forget_ranges = [](httplib::Request& request) { request.ranges.clear(); };
  while (connection.wait_request(leave)) {
    connection.begin_request();
    bool closed = false;
    if (!process_request(connection, closing_, closed, forget_ranges)) return;
    if (closed || closing_ || connection.dirty()) return;
  }
}

}  // namespace collimate::serve
