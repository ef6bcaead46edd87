#include "collimate/serve/body.h"

#include <charconv>

#include "collimate/base/error.h"
#include "collimate/base/lower_case.h"
#include "collimate/serve/api.h"

namespace collimate::serve {
namespace {

ApiError too_long(size_t max_bytes) {
  return ApiError(413, base::expectation("request", fmt::format("a body of at most {} bytes", max_bytes), "more"));
}

}  // namespace

bool has_body(const httplib::Request& request) {
  return request.has_header("Transfer-Encoding") ||
         (request.has_header("Content-Length") && request.get_header_value("Content-Length") != "0");
}

void check_body_headers(const httplib::Request& request, size_t max_bytes) {
  const size_t lengths = request.get_header_value_count("Content-Length");
  const size_t codings = request.get_header_value_count("Transfer-Encoding");
  if (lengths + codings == 0) throw ApiError(411, base::expectation("request", "a Content-Length", "none"));
  const std::string coding = request.get_header_value("Transfer-Encoding");
  if (lengths + codings > 1 || (codings == 1 && base::lower_case(coding) != "chunked")) {
    throw ApiError(400, base::expectation("request", "one Content-Length or Transfer-Encoding: chunked", "others"));
  }
  if (lengths == 1) {
    const std::string value = request.get_header_value("Content-Length");
    size_t length = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (error != std::errc() || end != value.data() + value.size())
      throw ApiError(400, base::expectation("request", "a Content-Length that is a number", value));
    if (length > max_bytes) throw too_long(max_bytes);
  }
  const std::string encoding = base::lower_case(request.get_header_value("Content-Encoding"));
  if (!encoding.empty() && encoding != "identity")
    throw ApiError(415, base::expectation("request", "a body that is not compressed", encoding));
  if (base::lower_case(request.get_header_value("Content-Type")).starts_with("multipart/"))
    throw ApiError(415, base::expectation("request", "Content-Type: application/json", "a form"));
}

std::string read_body(const httplib::Request& request, const httplib::ContentReader& reader, Connection& connection,
                      size_t max_bytes) {
  check_body_headers(request, max_bytes);
  std::string body;
  bool over = false;
  connection.begin_body();
  const bool whole = reader([&](const char* data, size_t size) {
    over = body.size() + size > max_bytes;
    if (!over) body.append(data, size);
    return !over;
  });
  if (over || connection.too_large()) throw too_long(max_bytes);
  if (connection.too_slow()) throw ApiError(408, base::expectation("request", "the body in time", "a part of it"));
  if (!whole) throw ApiError(400, base::expectation("request", "a whole body", "a part of it"));
  connection.request_read();
  return body;
}

}  // namespace collimate::serve
