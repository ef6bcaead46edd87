#include "collimate/cluster/process/process_worker.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/host/child_lines.h"
#include "collimate/host/child_process.h"
#include "collimate/host/frame_socket.h"

namespace collimate::cluster {
namespace {

constexpr double kEndSeconds = 5.0;  // for a worker that has closed its connection

void send_message(host::FrameSocket& socket, const Message& message) {
  Wire wire = to_wire(message);
  std::vector<std::span<const std::byte>> buffers(wire.frames.begin(), wire.frames.end());
  socket.send(wire.header, buffers, base::Deadline::never());
}

std::optional<Message> receive_message(host::FrameSocket& socket) {
  std::optional<host::Frame> frame = socket.receive(base::Deadline::never());
  if (!frame) return std::nullopt;
  return from_wire({std::move(frame->header), std::move(frame->buffers)});
}

// Pushes into a mailbox and waits while it is full, which holds the peer back through the socket. Gives up when `stop`
// is set.
void push(Mailbox& to, Message message, const std::atomic<bool>& stop) {
  while (!to.try_push(message) && !stop) usleep(500);
}

// Sends the messages of the mailbox until it is closed and empty or the peer is gone.
void pump_out(Mailbox& from, host::FrameSocket& socket) {
  while (true) {
    std::optional<Message> message = from.pop(1.0);
    if (message)
      send_message(socket, *message);
    else if (from.closed())
      return;
  }
}

constexpr int kSocketOfChild = 3;

host::ChildOptions child_options(std::vector<std::string> command, const host::FileDescriptor& socket) {
  if (command.empty()) command = {std::filesystem::read_symlink("/proc/self/exe").string(), "worker"};
  command.push_back("--store");
  command.push_back(fmt::format("fd:{}", kSocketOfChild));
  host::ChildOptions options;
  options.command = std::move(command);
  options.descriptors = {{socket.get(), kSocketOfChild}};
  options.input = host::ChildStream::kNull;
  options.output = host::ChildStream::kInherit;
  options.errors = host::ChildStream::kPipe;
  return options;
}

class ProcessWorker final : public WorkerLink {
 public:
  using Ends = std::pair<host::FileDescriptor, host::FileDescriptor>;
  ProcessWorker(const WorkerSpec& spec, std::vector<std::string> command, size_t capacity,
                std::shared_ptr<Mailbox> driver, Ends ends = host::FrameSocket::make_pair())
      : spec_(spec),
        inbox_(capacity),
        driver_(std::move(driver)),
        child_(child_options(std::move(command), ends.second)),
        lines_(child_.errors(), base::PassedLines()),
        socket_(std::move(ends.first), fmt::format("worker {}", spec.rank)) {
    ends.second.reset();  // the child has it
    inbox_.on_space([this] { driver_->poke(); });
    reader_ = std::thread([this] { read(); });
    writer_ = std::thread([this] { write(); });
  }
  ~ProcessWorker() override { ProcessWorker::stop(0); }

  int rank() const override { return spec_.rank; }
  uint64_t incarnation() const override { return spec_.incarnation; }
  Mailbox& inbox() override { return inbox_; }
  std::string describe() const override { return fmt::format("process {}", child_.pid()); }

  void stop(double seconds) override {
    if (stopped_.exchange(true)) return;
    inbox_.close();
    end_child(seconds);
    reader_.join();
    writer_.join();
    socket_.close();
  }

 private:
  void read() {
    std::string cause;
    try {
      while (std::optional<Message> message = receive_message(socket_)) push(*driver_, std::move(*message), stopped_);
    } catch (const std::exception& error) {
      cause = fmt::format(": {}", error.what());
    }
    if (stopped_) return;
    cause = fmt::format("the worker process ended with {}{}", end_child(kEndSeconds).description(), cause);
    Message died = message_of(Died{.cause = fmt::format("[worker {}] {}", spec_.rank, cause), .lost = true});
    died.sender = spec_.rank;
    died.incarnation = spec_.incarnation;
    push(*driver_, std::move(died), stopped_);
  }

  // Waits `seconds` for the child to end, then kills it. Any thread may call it.
  host::ExitStatus end_child(double seconds) {
    const std::lock_guard lock(child_mutex_);
    const std::optional<host::ExitStatus> status = child_.wait(base::Deadline::after(seconds));
    return status ? *status : child_.kill();
  }

  void write() {
    try {
      send_message(socket_, message_of(spec_));
      pump_out(inbox_, socket_);
      ::shutdown(socket_.descriptor(), SHUT_WR);  // the child then ends, as no more messages come
    } catch (const std::exception&) {
      inbox_.close();  // the reader reports the loss
    }
  }

  const WorkerSpec spec_;
  Mailbox inbox_;
  const std::shared_ptr<Mailbox> driver_;
  std::mutex child_mutex_;
  host::ChildProcess child_;
  host::ChildLines lines_;  // lines of its log and of what libraries print
  host::FrameSocket socket_;
  std::thread reader_;
  std::thread writer_;
  std::atomic<bool> stopped_{false};
};

}  // namespace

std::unique_ptr<WorkerLink> start_process_worker(const WorkerSpec& spec, std::vector<std::string> command,
                                                 size_t capacity, std::shared_ptr<Mailbox> driver) {
  return std::make_unique<ProcessWorker>(spec, std::move(command), capacity, std::move(driver));
}

void join_driver(const std::string& address, const HandlerFactory& make) {
  base::log().mark_for_reader();  // for the ProcessWorker in the driver
  host::FrameSocket socket = host::inherited_socket(address, "driver");
  std::optional<Message> hello = receive_message(socket);
  if (!hello) throw base::RunError(base::expectation("worker", "its texts from " + address, "nothing"));
  const auto spec = std::get<WorkerSpec>(content_of<std::variant<WorkerSpec>>(std::move(*hello)));
  Mailbox inbox(64);
  Mailbox outbox(64);
  inbox.on_space([&] { outbox.poke(); });
  outbox.on_space([&] { inbox.poke(); });
  std::atomic<bool> ended{false};
  std::thread reader([&] {
    try {
      while (std::optional<Message> message = receive_message(socket)) push(inbox, std::move(*message), ended);
    } catch (const std::exception&) {
      // The driver is gone, so the worker ends as after its last message.
    }
    inbox.close();
  });
  std::thread writer([&] {
    try {
      pump_out(outbox, socket);
    } catch (const std::exception&) {
      outbox.close();  // the driver is gone, and the reader ends the worker
    }
  });
  Worker(spec, make, inbox, outbox).run();
  outbox.close();
  writer.join();
  ended = true;
  ::shutdown(socket.descriptor(), SHUT_RDWR);  // wakes the reader
  reader.join();
}

}  // namespace collimate::cluster
