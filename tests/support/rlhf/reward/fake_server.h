#pragma once

#include <httplib.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "collimate/base/immovable.h"

namespace collimate::rlhf {

// A server on the loopback address that answers each POST as a test says. It ends with the object.
class FakeServer : private base::Immovable {
 public:
  // Gets the number of the request, from 0, and its JSON.
  using Answer = std::function<void(size_t number, const nlohmann::json& request, httplib::Response& response)>;

  explicit FakeServer(Answer answer) : answer_(std::move(answer)) {
    server_.Post(".*", [this](const httplib::Request& request, httplib::Response& response) {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      answer_(requests_.size() - 1, nlohmann::json::parse(request.body), response);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~FakeServer() {
    server_.stop();
    thread_.join();
  }

  std::string url(const std::string& path) const { return "http://127.0.0.1:" + std::to_string(port_) + path; }
  std::vector<httplib::Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  Answer answer_;
  mutable std::mutex mutex_;
  std::vector<httplib::Request> requests_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

inline void answer_json(httplib::Response& response, const nlohmann::json& body) {
  response.set_content(body.dump(), "application/json");
}

}  // namespace collimate::rlhf
