#pragma once

#include <httplib.h>

#include <string>

#include "collimate/serve/connection.h"

namespace collimate::serve {

// Returns whether the headers announce a body.
bool has_body(const httplib::Request& request);
// Throws ApiError for a body that cannot be taken: without a length (411), with contradicting headers of it (400), too
// long (413), compressed, or a form (415).
void check_body_headers(const httplib::Request& request, size_t max_bytes);
// Reads the whole body, after which the connection can serve another request. Throws ApiError as check_body_headers
// does, and for a body that turns out too long (413), comes too slowly (408) or is cut short (400).
std::string read_body(const httplib::Request& request, const httplib::ContentReader& reader, Connection& connection,
                      size_t max_bytes);

}  // namespace collimate::serve
