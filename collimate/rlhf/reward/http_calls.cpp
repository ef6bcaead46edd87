#include "collimate/rlhf/reward/http_calls.h"

#include <httplib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/host/pipe_io.h"
#include "collimate/text/utf8.h"

namespace collimate::rlhf {
namespace {

using base::at;
using nlohmann::json;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr size_t kLongestAnswer = size_t{64} << 20;  // of one answer
constexpr size_t kShownBytes = 300;                  // of an answer in a message

struct UrlParts {
  std::string server;  // "http://host:8000"
  std::string path;    // "/score?model=a"
};

UrlParts url_parts(const std::string& url) {
  const size_t end = url.find_first_of("/?", url.find("://") + 3);
  if (end == std::string::npos) return {url, "/"};
  return {url.substr(0, end), (url[end] == '?' ? "/" : "") + url.substr(end)};
}

// Returns whether the text behind a host is nothing, or a colon and a port.
bool is_port(std::string_view text) {
  int port = 0;
  if (text.empty()) return true;
  const auto [end, problem] = std::from_chars(text.data() + 1, text.data() + text.size(), port);
  return text.front() == ':' && problem == std::errc() && end == text.data() + text.size() && port > 0 && port < 65536;
}

// One try of a request.
struct Attempt {
  std::optional<json> body;
  std::string error;
  bool again = false;                                 // another try may have another end
  bool broke_off = false;                             // the connection ended
  int status = 0;                                     // where it is the failure
  std::optional<double> wait_seconds = std::nullopt;  // that the server asks for
};

std::string failure_words(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
      return "nobody answers there; try starting the server, or the host and port at which it listens";
    case httplib::Error::ConnectionTimeout:
      return "the connection was not made in time";
    case httplib::Error::Read:
      return "the connection ended before the answer did";
    case httplib::Error::Write:
      return "the connection ended before the request did";
    case httplib::Error::SSLConnection:
      return "no encrypted connection could be made; try http:// if the server does not encrypt";
    case httplib::Error::SSLLoadingCerts:
    case httplib::Error::SSLServerVerification:
      return "the server's certificate is not known here; try SSL_CERT_FILE=FILE with certificates to trust";
    default:
      return "the request failed: " + httplib::to_string(error);
  }
}

bool worth_another(httplib::Error error) {
  return error != httplib::Error::SSLLoadingCerts && error != httplib::Error::SSLServerVerification;
}

bool worth_another(int status) {
  constexpr std::array kPassing{408, 425, 429, 500, 502, 503, 504};
  return std::ranges::find(kPassing, status) != kPassing.end();
}

// Returns the beginning of a server's answer on one line.
std::string shown_body(const std::string& body) {
  std::string shown = text::valid_utf8(base::beginning_of(body, kShownBytes));
  std::ranges::replace(shown, '\n', ' ');
  return shown;
}

// Returns the seconds of a header Retry-After; nothing for a date and for what is no number.
std::optional<double> retry_after(const httplib::Response& response) {
  const std::string text = response.get_header_value("Retry-After");
  constexpr int64_t kMostSeconds = 60;
  int64_t seconds = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return static_cast<double>(std::min(seconds, kMostSeconds));
}

// Returns what to try after a status that means the same of every server, "" for any other.
std::string response_remedy(const httplib::Response& response) {
  const std::string location = response.get_header_value("Location");
  if (response.status >= 300 && response.status <= 399 && !location.empty())
    return fmt::format("; try the address {}, as redirections are not followed", location);
  if (response.status == 401 || response.status == 403)
    return "; try key_variable: NAME in its entry, a variable of the environment with a key that the server takes";
  return "";
}

Attempt attempt_of(const httplib::Response& response, const std::string& body) {
  if (response.status < 200 || response.status > 299)
    return {.error = fmt::format("status {}: {}{}", response.status, shown_body(body), response_remedy(response)),
            .again = worth_another(response.status),
            .status = response.status,
            .wait_seconds = retry_after(response)};
  Attempt attempt{.body = json::parse(body, nullptr, false)};
  if (!attempt.body->is_discarded()) return attempt;
  return {.error = fmt::format("the answer is no JSON: {}; try the address at which the server answers such requests",
                               shown_body(body)),
          .again = true};
}

}  // namespace

// A connection to the server, which one thread uses and another may end.
class HttpCalls::Connection {
 public:
  explicit Connection(const HttpTarget& target)
      : path_(url_parts(target.url).path),
        limit_(target.timeout_seconds),
        client_(std::make_unique<httplib::Client>(url_parts(target.url).server)) {
    const auto limit = std::chrono::duration_cast<std::chrono::microseconds>(limit_);
    // Nobody can end a request while it connects.
    constexpr std::chrono::microseconds kLongestConnect = std::chrono::seconds(10);
    client_->set_connection_timeout(std::min(limit, kLongestConnect));
    client_->set_read_timeout(limit);
    client_->set_write_timeout(limit);
    client_->set_keep_alive(true);
    client_->set_tcp_nodelay(true);
    if (!target.bearer.empty()) client_->set_bearer_token_auth(target.bearer);
  }

  ~Connection() {
    const host::PipeSignalBlocked blocked;  // closing an encrypted connection writes
    client_.reset();
  }

  Attempt send(const std::string& request) {
    const host::PipeSignalBlocked blocked;
    Attempt attempt = send_once(request);
    // A kept connection that the server has closed meanwhile is no try of the server.
    if (attempt.broke_off && std::exchange(used_, false)) attempt = send_once(request);
    used_ = attempt.body.has_value();
    return attempt;
  }

  // Ends a request that takes too long, or whatever request there is.
  void end_if(bool any) {
    const std::lock_guard lock(mutex_);
    if (!since_ || (!any && Clock::now() - *since_ < limit_)) return;
    late_ = true;
    client_->stop();
  }

 private:
  Attempt send_once(const std::string& request) {
    begin();
    std::string body;
    bool too_long = false;
    httplib::Request asked;
    asked.method = "POST";
    asked.path = path_;
    asked.headers = {{"Content-Type", "application/json"}, {"Accept", "application/json"}};
    asked.body = request;
    asked.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
      too_long = body.size() + size > kLongestAnswer;
      if (!too_long) body.append(data, size);
      return !too_long;
    };
    httplib::Response response;
    httplib::Error error = httplib::Error::Success;
    const bool sent = client_->send(asked, response, error);
    if (ended_late())
      return {.error = fmt::format("no answer within {} s; try a larger timeout_seconds or fewer parallel_requests",
                                   limit_.count()),
              .again = true};
    if (too_long) return {.error = fmt::format("the answer has more than {} MiB", kLongestAnswer >> 20)};
    if (sent) return attempt_of(response, body);
    const bool broke_off = error == httplib::Error::Read || error == httplib::Error::Write;
    return {.error = failure_words(error), .again = worth_another(error), .broke_off = broke_off};
  }

  void begin() {
    const std::lock_guard lock(mutex_);
    late_ = false;
    since_ = Clock::now();
  }
  bool ended_late() {
    const std::lock_guard lock(mutex_);
    since_.reset();
    return late_;
  }

  std::string path_;
  Seconds limit_;
  std::unique_ptr<httplib::Client> client_;
  bool used_ = false;  // the last request was answered, and its connection is kept
  std::mutex mutex_;
  std::optional<Clock::time_point> since_;  // when the request began that goes on
  bool late_ = false;                       // and it was ended from outside
};

// The requests of one call of post().
struct HttpCalls::Round {
  const std::vector<json>& requests;
  std::vector<Answer> answers;
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::condition_variable changed;
  size_t working = 0;    // threads; under the mutex
  bool stopped = false;  // under the mutex

  // Waits that long, unless the round is stopped. Returns false then.
  bool wait(double seconds) {
    std::unique_lock lock(mutex);
    return !changed.wait_for(lock, Seconds(seconds), [this] { return stopped; });
  }
};

std::string url_problem(const std::string& url) {
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return "an address that begins with http:// or https://";
  if (url.find_first_of(" \t\n#") != std::string::npos) return "an address without spaces and without #";
  const std::string server = url_parts(url).server;
  const std::string_view host = std::string_view(server).substr(server.find("://") + 3);
  if (host.find('@') != std::string_view::npos) return "an address without a user's name (key_variable names a key)";
  const bool six = host.starts_with('[');  // IPv6, of which httplib reads digits alone
  if (six && host.substr(0, host.find(']')).find_first_not_of("[0123456789:") != std::string_view::npos)
    return "a name in the place of an IPv6 address with letters";
  const size_t name = six ? host.find(']') + 1 : std::min(host.find(':'), host.size());
  if (name == 0 || !is_port(host.substr(name))) return "an address with a host, and a port from 1 to 65535 if any";
  return "";
}

HttpCalls::HttpCalls(HttpTarget target) : target_(std::move(target)) {}
HttpCalls::~HttpCalls() = default;

HttpCalls::Answer HttpCalls::answer_to(const std::string& request, Connection& connection, Round& round) const {
  constexpr double kFirstWait = 0.25, kLongestWait = 8.0;
  double wait = kFirstWait;
  for (int64_t tried = 1;; ++tried) {
    Attempt attempt = connection.send(request);
    if (attempt.body) return {.body = std::move(*attempt.body)};
    if (tried < target_.tries && attempt.again && round.wait(attempt.wait_seconds.value_or(wait))) {
      wait = std::min(2 * wait, kLongestWait);
      continue;
    }
    const std::string times = tried == 1 ? "" : fmt::format(" in {} tries", tried);
    return {.error = fmt::format("{}{}: {}", target_.url, times, attempt.error), .status = attempt.status};
  }
}

void HttpCalls::work(Connection& connection, Round& round) const {
  for (size_t i = round.next++; i < round.requests.size() && round.wait(0); i = round.next++) {
    try {
      const std::string request = at(round.requests, i).dump(-1, ' ', false, json::error_handler_t::replace);
      at(round.answers, i) = answer_to(request, connection, round);
    } catch (const std::exception& error) {
      at(round.answers, i).error = fmt::format("{}: {}", target_.url, error.what());
    }
  }
  const std::lock_guard lock(round.mutex);
  --round.working;
  round.changed.notify_all();
}

std::vector<HttpCalls::Answer> HttpCalls::post(const std::vector<json>& requests,
                                               const std::function<void()>& waiting) {
  constexpr Seconds kLook(0.05);
  Round round{.requests = requests, .answers = std::vector<Answer>(requests.size())};
  const size_t workers = std::min(requests.size(), static_cast<size_t>(target_.parallel));
  while (connections_.size() < workers) connections_.push_back(std::make_unique<Connection>(target_));
  round.working = workers;
  std::vector<std::jthread> threads;
  const auto end_all = [&](bool any) {
    for (const auto& connection : connections_) connection->end_if(any);
  };
  for (size_t i = 0; i < workers; ++i) threads.emplace_back([this, i, &round] { work(*at(connections_, i), round); });
  std::exception_ptr thrown;
  std::unique_lock lock(round.mutex);
  while (!round.changed.wait_for(lock, kLook, [&] { return round.working == 0; })) {
    lock.unlock();
    try {
      if (!thrown && waiting) waiting();
    } catch (...) {
      thrown = std::current_exception();
    }
    end_all(thrown != nullptr);
    lock.lock();
    if (thrown) round.stopped = true;
    if (thrown) round.changed.notify_all();
  }
  lock.unlock();
  threads.clear();
  if (thrown) std::rethrow_exception(thrown);
  return std::move(round.answers);
}

}  // namespace collimate::rlhf
