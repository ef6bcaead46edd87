#include "collimate/serve/http_server.h"

#include <strings.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/read_file.h"
#include "collimate/serve/body.h"
#include "collimate/serve/exchange.h"
#include "collimate/serve/listener.h"

namespace collimate::serve {
namespace {

constexpr const char* kJson = "application/json";
constexpr const char* kEvents = "text/event-stream";
constexpr const char* kChatPath = "/v1/chat/completions";
constexpr const char* kCompletionsPath = "/v1/completions";
constexpr const char* kModelsPath = "/v1/models";
constexpr size_t kHeaderBytes = 64 << 10;
constexpr auto kStopLook = std::chrono::milliseconds(50);  // how often run() looks at the flag

using httplib::Request;
using httplib::Response;
using Handled = httplib::Server::HandlerResponse;

void answer(Response& response, int status, const std::string& body, const char* type = kJson) {
  response.status = status;
  response.set_content(body, type);
}

void answer_error(Response& response, const ApiError& error) {
  answer(response, error.status, error_body(error));
  if (error.status == 429 || error.status == 503) response.set_header("Retry-After", "1");
  if (error.status == 401) response.set_header("WWW-Authenticate", "Bearer");
}

// Returns the error of a request that httplib could not read to its end.
ApiError unread(const Connection& connection, int status) {
  if (connection.too_slow()) return ApiError(408, "the request did not arrive in time");
  if (!connection.too_large()) return ApiError(status, "the request cannot be read");
  if (connection.in_body()) return ApiError(413, "the request's body is too long");
  return ApiError(431, base::expectation("request", fmt::format("a head of at most {} bytes", kHeaderBytes), "more"));
}

void check_host(const Request& request) {
  const size_t hosts = request.get_header_value_count("Host");
  if (hosts == 1 || (hosts == 0 && request.version == "HTTP/1.0")) return;
  throw ApiError(400, base::expectation("request", "one Host header", hosts == 0 ? "none" : fmt::to_string(hosts)));
}

// Compares two keys in a time that does not depend on where they differ.
bool same_key(const std::string& a, const std::string& b) {
  unsigned char different = a.size() != b.size();
  for (size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i] ^ b[i % std::max<size_t>(1, b.size())]);
  return different == 0;
}

// Returns what follows the scheme Bearer, which may be in any case (RFC 9110, 11.1), or "" for another scheme.
std::string bearer_token(const std::string& authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (strncasecmp(authorization.c_str(), kScheme.data(), kScheme.size()) != 0) return "";
  const size_t begin = authorization.find_first_not_of(' ', kScheme.size());
  return begin == std::string::npos ? "" : authorization.substr(begin);
}

// Returns the endpoint's label in the metrics. There are only few, whatever paths clients ask for.
std::string endpoint_name(const std::string& path) {
  for (const char* known : {kChatPath, kCompletionsPath, kModelsPath, "/health", "/metrics"}) {
    if (path == known) return known;
  }
  return path.starts_with(std::string(kModelsPath) + "/") ? kModelsPath : "other";
}

ListenerOptions listener_options(const ServerOptions& options) {
  return {.connection = {.read_seconds = options.read_seconds,
                         .write_seconds = options.write_seconds,
                         .idle_seconds = options.idle_seconds,
                         .head_bytes = kHeaderBytes,
                         // A body may take twice its size on the wire, because chunks have heads of their own.
                         .body_bytes = 2 * static_cast<size_t>(*options.max_body_bytes)},
          .connections = options.max_connections};
}

}  // namespace

std::vector<std::string> read_api_keys(const std::string& path) {
  std::istringstream file(base::read_file(path));
  std::vector<std::string> keys;
  constexpr const char* kBlank = " \t\r";
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string::npos || line[begin] == '#') continue;
    keys.push_back(line.substr(begin, line.find_last_not_of(kBlank) - begin + 1));
  }
  if (keys.empty()) throw base::InputError(base::expectation("serve.api_key_file", "a file of keys, one a line", path));
  return keys;
}

struct HttpServer::Impl {
  Impl(const ServerOptions& the_options, const ServedModel& the_model, EngineLoop& the_engine);

  void install();
  Handled route(const Request& request, Response& response);
  void check_key(const Request& request) const;
  void show_models(const std::string& path, Response& response) const;
  void show_health(Response& response) const;
  void complete(Endpoint endpoint, const Request& request, Response& response, const httplib::ContentReader& reader);
  void stream(std::shared_ptr<Exchange> exchange, const Request& request, Response& response);
  void finish_headers(Response& response) const;

  const ServerOptions options;
  const ServedModel& model;
  EngineLoop& engine;
  const std::vector<std::string> keys;
  ServerMetrics metrics;
  std::mutex parsing;  // only one body at a time is parsed, as JSON takes many times its memory
  Listener listener;
  int port = 0;
};

HttpServer::Impl::Impl(const ServerOptions& the_options, const ServedModel& the_model, EngineLoop& the_engine)
    : options(the_options),
      model(the_model),
      engine(the_engine),
      keys(options.api_key_file->empty() ? std::vector<std::string>() : read_api_keys(options.api_key_file)),
      listener(listener_options(options)) {
  install();
  port = listener.open(options.host, static_cast<int>(*options.port));
}

void HttpServer::Impl::install() {
  listener.set_keep_alive_max_count(1 << 20);
  listener.set_keep_alive_timeout(static_cast<time_t>(options.idle_seconds));  // only for the Keep-Alive header
  listener.set_pre_routing_handler(
      [this](const Request& request, Response& response) { return route(request, response); });
  for (const auto& [path, endpoint] :
       {std::pair(kChatPath, Endpoint::kChat), {kCompletionsPath, Endpoint::kCompletions}}) {
    listener.Post(path, [this, endpoint = endpoint](const Request& request, Response& response,
                                                    const httplib::ContentReader& reader) {
      complete(endpoint, request, response, reader);
    });
  }
  listener.set_expect_100_continue_handler([this](const Request& request, Response& response) {
    try {
      check_key(request);
      check_body_headers(request, static_cast<size_t>(*options.max_body_bytes));
      return 100;
    } catch (const ApiError& error) {
      answer_error(response, error);
      return error.status;
    }
  });
  listener.set_exception_handler([](const Request&, Response& response, std::exception_ptr error) {
    answer_error(response, to_api_error(std::move(error)));
  });
  listener.set_error_handler(httplib::Server::HandlerWithResponse([](const Request&, Response& response) {
    if (!response.body.empty()) return Handled::Unhandled;
    answer_error(response, unread(Listener::current(), response.status));
    return Handled::Handled;
  }));
  listener.set_post_routing_handler([this](const Request&, Response& response) { finish_headers(response); });
  listener.set_logger([this](const Request& request, const Response& response) {
    metrics.count_answer(endpoint_name(request.path), response.status);
  });
}

// Checks a request and answers it, unless its path is one of the two that complete, which have handlers of their own.
Handled HttpServer::Impl::route(const Request& request, Response& response) {
  const bool get = request.method == "GET" || request.method == "HEAD";
  const bool completes = request.path == kChatPath || request.path == kCompletionsPath;
  const bool models = request.path == kModelsPath || request.path.starts_with(std::string(kModelsPath) + "/");
  if (!has_body(request)) Listener::current().request_read();
  check_host(request);
  if (request.path != "/health") check_key(request);
  if (!completes && !models && request.path != "/health" && request.path != "/metrics") {
    throw ApiError(404, base::expectation("serve", "a path of the interface", request.path), "", "unknown_url");
  }
  if (completes ? request.method != "POST" : !get) {
    response.set_header("Allow", completes ? "POST" : "GET, HEAD");
    throw ApiError(405, base::expectation(request.path, completes ? "POST" : "GET", request.method));
  }
  if (completes) return Handled::Unhandled;
  if (models) {
    show_models(request.path, response);
  } else if (request.path == "/health") {
    show_health(response);
  } else {
    answer(response, 200, metrics.text(engine.status(), listener.connections(), model.gauges),
           "text/plain; version=0.0.4");
  }
  return Handled::Handled;
}

void HttpServer::Impl::check_key(const Request& request) const {
  if (keys.empty()) return;
  const std::string given = bearer_token(request.get_header_value("Authorization"));
  bool known = false;
  for (const std::string& key : keys) known |= same_key(given, key);
  if (known) return;
  throw ApiError(401,
                 base::expectation("serve", "Authorization: Bearer and one of the server's keys", "another or none"),
                 "", "invalid_api_key");
}

void HttpServer::Impl::show_models(const std::string& path, Response& response) const {
  const nlohmann::ordered_json one = {{"id", model.name},
                                      {"object", "model"},
                                      {"created", model.created},
                                      {"owned_by", "collimate"},
                                      {"max_model_len", model.max_sequence_tokens}};
  if (path == kModelsPath) {
    answer(response, 200, nlohmann::ordered_json{{"object", "list"}, {"data", {one}}}.dump());
    return;
  }
  const std::string name = path.substr(std::string(kModelsPath).size() + 1);
  check_model(name, model.name);
  answer(response, 200, one.dump());
}

void HttpServer::Impl::show_health(Response& response) const {
  const EngineStatus status = engine.status();
  const bool good = status.broken.empty() && !listener.closing();
  const std::string state = !status.broken.empty() ? "failed" : listener.closing() ? "shutting down" : "ok";
  answer(response, good ? 200 : 503, nlohmann::ordered_json{{"status", state}}.dump());
}

void HttpServer::Impl::complete(Endpoint endpoint, const Request& request, Response& response,
                                const httplib::ContentReader& reader) {
  Connection& connection = Listener::current();
  ApiRequest wanted;
  {
    const std::string body = read_body(request, reader, connection, static_cast<size_t>(*options.max_body_bytes));
    const std::lock_guard lock(parsing);
    wanted = parse_request(
        endpoint, body,
        {.max_choices = std::min(*options.max_choices, *options.max_requests), .sampling = model.sampling});
  }
  if (!wanted.model.empty()) check_model(wanted.model, model.name);
  connection.allow_interim_answers(request.version != "HTTP/1.0");
  const bool streams = wanted.stream;
  auto exchange =
      std::make_shared<Exchange>(std::move(wanted), model, engine, metrics, connection, options.stall_seconds);
  if (streams) {
    stream(std::move(exchange), request, response);
  } else {
    answer(response, 200, exchange->whole());
  }
}

void HttpServer::Impl::stream(std::shared_ptr<Exchange> exchange, const Request& request, Response& response) {
  response.status = 200;
  response.set_header("Cache-Control", "no-cache");
  response.set_header("X-Accel-Buffering", "no");
  const auto provider = [this, exchange](size_t, httplib::DataSink& sink) {
    try {
      const std::string events = exchange->events();
      const bool written = events.empty() || sink.write(events.data(), events.size());
      if (events.empty()) sink.done();
      if (!written) metrics.count_gone();
      return written;
    } catch (const ClientGone&) {
      return false;
    }
  };
  if (request.version == "HTTP/1.0") {  // without chunks, the end of the connection ends the answer
    Listener::current().close_after_answer();
    response.set_content_provider(kEvents, provider);
  } else {
    response.set_chunked_content_provider(kEvents, provider);
  }
}

void HttpServer::Impl::finish_headers(Response& response) const {
  if (!Listener::current().dirty() && !listener.closing()) return;
  response.headers.erase("Keep-Alive");
  response.headers.erase("Connection");
  response.set_header("Connection", "close");
}

HttpServer::HttpServer(const ServerOptions& options, const ServedModel& model, EngineLoop& engine)
    : impl_(std::make_unique<Impl>(options, model, engine)) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const { return impl_->port; }

int64_t HttpServer::run(const base::StopFlag& stop) {
  Impl& s = *impl_;
  std::atomic<bool> ended = false;
  std::thread accepting([&] {
    s.listener.accept_all();
    ended = true;
  });
  const auto broken = [&] { return s.engine.status().broken; };
  while (!stop.requested() && !ended && broken().empty()) std::this_thread::sleep_for(kStopLook);
  const bool failed = ended;
  s.listener.close();
  base::log_info("shutting down: {} completions in flight, at most {} s", s.engine.status().in_flight,
                 s.options.shutdown_seconds);
  const auto deadline = base::Deadline::after(s.options.shutdown_seconds);
  const int64_t cut = s.engine.drain(deadline);
  // Answers that are complete may still have to be written.
  const auto writing = base::Deadline::after(std::max(1.0, deadline.remaining_milliseconds() / 1000.0));
  while (s.listener.connections() > 0 && !writing.expired()) std::this_thread::sleep_for(kStopLook);
  s.listener.cut();
  accepting.join();
  if (failed) throw base::RunError(base::expectation("serve", "to accept connections until it is stopped", "an error"));
  if (const std::string cause = broken(); !cause.empty()) throw base::RunError(cause);
  return cut;
}

}  // namespace collimate::serve
