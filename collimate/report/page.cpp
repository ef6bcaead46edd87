#include "collimate/report/page.h"

#include <fmt/format.h>

#include "collimate/report/html.h"

namespace collimate::report {

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      R"(<!doctype html><html lang="en"><head><meta charset="utf-8">)"
      R"(<meta name="viewport" content="width=device-width, initial-scale=1"><title>{}</title><style>{}{}</style></head>)"
      "<body><main>{}</main><script>{}</script></body></html>\n",
      escape(title), base::html_palette(), style_sheet(), body, page_script());
}

}  // namespace collimate::report
