#include "tests/golden/place.h"

#include <fmt/format.h>

#include <limits>

#include "collimate/base/error.h"
#include "collimate/base/json.h"

namespace collimate::golden {
namespace {

bool is_number(const json& value) { return value.is_number() || value.is_boolean(); }

std::string short_text(const json& value) {
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (value.is_structured()) return fmt::format("{} of {}", value.type_name(), value.size());
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

// Strings that stand for numbers which JSON has not: no file has a control character in a string as it is.
const std::vector<std::pair<std::string, double>>& named_numbers() {
  static const std::vector<std::pair<std::string, double>> names = {
      {"-Infinity", -std::numeric_limits<double>::infinity()},
      {"Infinity", std::numeric_limits<double>::infinity()},
      {"NaN", std::numeric_limits<double>::quiet_NaN()}};
  return names;
}

void put_numbers(json& value) {
  if (value.is_structured())
    for (json& element : value) put_numbers(element);
  if (!value.is_string()) return;
  const auto& text = value.get_ref<const std::string&>();
  for (const auto& [name, number] : named_numbers())
    if (text == "\x01" + name) {
      value = number;
      return;
    }
}

// Quotes the names of numbers that stand outside of strings.
std::string with_quoted_names(const std::string& text) {
  std::string out;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto* found = named_numbers().data();
    const auto* end = found + named_numbers().size();
    while (!inside && found != end && text.compare(i, found->first.size(), found->first) != 0) ++found;
    if (!inside && found != end) {
      out += "\"\\u0001" + found->first + "\"";
      i += found->first.size() - 1;
      continue;
    }
    out += text[i];
    if (inside && text[i] == '\\' && i + 1 < text.size())
      out += text[++i];
    else if (text[i] == '"')
      inside = !inside;
  }
  return out;
}

}  // namespace

void Place::fail(const std::string& expected, const std::string& got) const {
  throw base::InputError(base::expectation(path_, expected, got));
}

Place Place::at(const std::string& key) const {
  if (!value_->is_object()) fail("an object", short_text(*value_));
  const auto found = find(key);
  if (!found) fail("\"" + key + "\"", "none");
  return *found;
}

std::optional<Place> Place::find(const std::string& key) const {
  if (!value_->is_object()) return std::nullopt;
  const auto entry = value_->find(key);
  if (entry == value_->end() || entry->is_null()) return std::nullopt;
  return Place(*entry, path_ == "the file" ? key : path_ + "." + key);
}

std::vector<Place> Place::entries() const {
  if (!value_->is_object()) fail("an object", short_text(*value_));
  std::vector<Place> out;
  for (const auto& [key, value] : value_->items()) out.push_back(Place(value, path_ + "." + key));
  return out;
}

std::vector<Place> Place::items(size_t count) const {
  if (!value_->is_array()) fail("an array", short_text(*value_));
  if (count == 0 ? value_->empty() : value_->size() != count)
    fail(count == 0 ? "one element or more" : fmt::format("{} elements", count), std::to_string(value_->size()));
  std::vector<Place> out;
  for (size_t i = 0; i < value_->size(); ++i) out.push_back(Place((*value_)[i], fmt::format("{}[{}]", path_, i)));
  return out;
}

void Place::number() const {
  if (!is_number(*value_)) fail("a number", short_text(*value_));
}

void Place::numbers(size_t count) const {
  for (const Place& one : items(count)) one.number();
}

void Place::numbers_like(const Place& like) const {
  const std::vector<Place> rows = items(like.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    const size_t count = like.value()[r].size();
    if (count > 0 || !rows[r].value().is_array() || rows[r].size() > 0) rows[r].numbers(count);
  }
}

void Place::index(int64_t count) const {
  if (!value_->is_number_integer() || value_->get<int64_t>() < 0 || value_->get<int64_t>() >= count)
    fail(fmt::format("an integer from 0 to {}", count - 1), short_text(*value_));
}

void Place::ids(int64_t vocabulary) const {
  for (const Place& row : items()) {
    if (!row.value().is_array()) row.fail("an array", short_text(row.value()));
    for (size_t t = 0; t < row.size(); ++t)
      Place(row.value()[t], fmt::format("{}[{}]", row.path_, t)).index(vocabulary);
  }
}

double number_or(const json& object, const std::string& key, double fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : fallback;
}

const json& object_or_empty(const json& object, const std::string& key) {
  static const json kEmpty = json::object();
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : kEmpty;
}

json parse_python(const std::string& text, const std::string& where) {
  json value = base::parse_json(with_quoted_names(text), where);
  put_numbers(value);
  return value;
}

}  // namespace collimate::golden
