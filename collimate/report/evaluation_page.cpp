#include "collimate/report/evaluation_page.h"

#include <fmt/format.h>

#include "collimate/report/html.h"
#include "collimate/report/page.h"

namespace collimate::report {
namespace {

using Json = nlohmann::ordered_json;

std::string plain(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }
std::string text_of(const Json& value) { return escape(plain(value)); }

std::string number_cell(const Json& estimate, bool sign) {
  if (estimate.at("value").is_null()) return R"(<td class="n">-</td>)";
  const auto value = estimate.at("value").get<double>();
  const Json& error = estimate.at("standard_error");
  return fmt::format(R"(<td class="n">{}{}{}</td>)", sign && value > 0 ? "+" : "", short_number(value, false, 4),
                     error.is_null() ? "" : " ± " + short_number(error.get<double>(), false, 2));
}

std::string table(const Json& document) {
  const Json &models = document.at("models"), &differences = document.at("differences");
  std::string out = R"(<div class="scroll"><table><tr><th></th>)";
  for (const Json& model : models) out += fmt::format(R"(<th class="n">{}</th>)", text_of(model.at("model")));
  for (const Json& difference : differences)
    out +=
        fmt::format(R"(<th class="n">{} less {}</th>)", text_of(difference.at("to")), text_of(difference.at("from")));
  out += "</tr>";
  for (const auto& [name, ignored] : models.at(0).at("metrics").items()) {
    out += fmt::format("<tr><td>{}</td>", escape(name));
    for (const Json& model : models) out += number_cell(model.at("metrics").at(name), false);
    for (const Json& difference : differences) out += number_cell(difference.at("metrics").at(name), true);
    out += "</tr>";
  }
  return out + "</table></div>";
}

std::string part(const std::string& label, const std::string& text) {
  return fmt::format(R"(<div><div class="label">{}</div><div class="text">{}</div></div>)", label, text);
}

// Draws a column of what one model made of a row.
std::string outputs_of(const Json& made, const std::string& value_name) {
  std::string out = fmt::format(R"(<div><div class="label">{}</div>)", text_of(made.at("model")));
  for (const Json& output : made.at("outputs"))
    out += fmt::format(R"(<span class="chip flat">{} {}</span><div class="text">{}</div>)", escape(value_name),
                       short_number(output.at("value").get<double>()), text_of(output.at("text")));
  return out + "</div>";
}

// Tells the rows of the data on which a model was not measured, or not as they stand.
std::string left_out(const Json& document) {
  std::string out;
  for (const Json& model : document.at("models"))
    for (const Json& rows : model.at("left_out"))
      out += fmt::format(R"(<p class="soft">{}: {}: {} of {} rows {}</p>)", text_of(model.at("model")),
                         text_of(rows.at("data")), rows.at("rows").get<int64_t>(), rows.at("of").get<int64_t>(),
                         text_of(rows.at("what")) + escape(rows.value("rest", "")));
  return out;
}

std::string samples(const Json& document) {
  std::string out = R"(<h2>Samples</h2><p class="soft">The first rows of the data, in their order.</p>)";
  const std::string value_name = document.at("sample_values");
  for (const Json& sample : document.at("samples")) {
    out += R"(<article class="sample"><header class="pair">)" + part("prompt", text_of(sample.at("prompt")));
    if (!sample.at("expected").get<std::string>().empty()) out += part("expected", text_of(sample.at("expected")));
    out += R"(</header><div class="pair">)";
    for (const Json& made : sample.at("models")) out += outputs_of(made, value_name);
    out += "</div></article>";
  }
  return out;
}

std::string settings(const Json& document) {
  std::string out = R"(<h2>Settings</h2><div class="scroll"><table>)";
  for (const auto& [name, value] : document.at("settings").items())
    out += fmt::format("<tr><th>{}</th><td>{}</td></tr>", escape(name), text_of(value));
  return out + "</table></div>";
}

}  // namespace

std::string render_evaluation(const Json& document) {
  const std::string title = fmt::format("{} of {}", plain(document.at("measure")), plain(document.at("data")));
  return html_page(title, fmt::format("<h1>{}</h1>", escape(title)) +
                              R"(<p class="soft">± is the standard error; that of a difference is taken row by row, )"
                              "so it can be smaller.</p>" +
                              table(document) + left_out(document) + samples(document) + settings(document));
}

}  // namespace collimate::report
