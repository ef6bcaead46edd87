#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collimate::rlhf {

// Says where requests go and how often, and for how long, they are tried.
struct HttpTarget {
  std::string url;         // http:// or https://, with a host and a path
  std::string bearer;      // the token of the header Authorization; empty: none
  double timeout_seconds;  // for one answer, once the connection is made
  int64_t tries;           // of one request, at least 1
  int64_t parallel;        // most requests at one time, at least 1
};

// Returns why `url` cannot be asked, completing "expected …, got"; "" where it can.
std::string url_problem(const std::string& url);

// Sends JSON to one address by POST, several requests at a time over connections that are kept.
//
// A request is sent again where nobody answers, where an answer does not come in time, breaks off or is no JSON, and
// for the statuses 408, 425, 429, 500, 502, 503 and 504. It waits between tries, twice as long each time (0.25 to 8
// seconds), or as long as Retry-After says (at most 60 seconds). An answer of more than 64 MiB and any other status are
// failures at once. Redirections are not followed. An error says what to try where that follows from it alone.
class HttpCalls {
 public:
  struct Answer {
    nlohmann::json body;  // of status 200 to 299
    std::string error;    // empty beside a body
    int status = 0;       // of a failure by which a server answers; 0 for any other
  };

  explicit HttpCalls(HttpTarget target);
  ~HttpCalls();

  // Returns the answers to all requests, in their order. `waiting` is called again and again, on this thread, until the
  // last has come; what it throws ends all requests and is thrown on.
  std::vector<Answer> post(const std::vector<nlohmann::json>& requests, const std::function<void()>& waiting);

 private:
  class Connection;
  struct Round;
  void work(Connection& connection, Round& round) const;
  Answer answer_to(const std::string& request, Connection& connection, Round& round) const;

  HttpTarget target_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace collimate::rlhf
