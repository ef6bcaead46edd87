// Templates that checkpoints and TRL bring, against what Jinja2 makes of them: their texts are not in the repository,
// so that they are read where they are, and what is compared are hashes (tests/golden/make_templates.py).
#include <fmt/chrono.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/philox.h"
#include "collimate/base/read_file.h"
#include "collimate/text/jinja/template.h"
#include "tests/support/text/written_files.h"

namespace collimate::text::jinja {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using Templates = std::map<std::string, std::string>;  // by the name that the goldens have

std::string hash_of(const std::string& text) { return fmt::format("{:016x}", base::stable_hash(text)); }

ordered_json published() {
  return ordered_json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/published_templates.json"));
}

Templates shared_templates() {
  Templates found;
  const fs::path root = shared_data("");
  if (root.empty()) return found;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "tokenizer_config.json") continue;
    const ordered_json config = ordered_json::parse(std::ifstream(entry.path()));
    if (config.contains("chat_template"))
      found[fs::relative(entry.path().parent_path(), root)] = config.at("chat_template");
  }
  return found;
}

// Where TRL's templates are: COLLIMATE_TEMPLATE_DIRECTORY, or the environment that bench/peers/texts.sh makes.
fs::path trl_directory() {
  if (const char* named = std::getenv("COLLIMATE_TEMPLATE_DIRECTORY")) return named;
  const char *peers = std::getenv("PEERS"), *home = std::getenv("HOME");
  const fs::path cache = fs::path(home != nullptr ? home : "/") / ".cache/collimate-peers";
  const fs::path libraries = (peers != nullptr ? fs::path(peers) : cache) / "texts/lib";
  std::error_code absent;
  for (const auto& python : fs::directory_iterator(libraries, absent))
    if (const fs::path found = python.path() / "site-packages/trl/chat_templates"; fs::is_directory(found))
      return found;
  return {};
}

Templates trl_templates() {
  Templates found;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(trl_directory(), absent))
    if (entry.path().extension() == ".jinja")
      found["trl/" + entry.path().filename().string()] = base::read_file(entry.path());
  return found;
}

// The text with the goldens' day for today, in the forms in which templates ask for it; nothing where it is refused.
std::optional<std::string> text_of(const Template& chat, const ordered_json& variables, const std::string& day) {
  std::string text;
  try {
    text = chat.render(variables);
  } catch (const base::InputError&) {
    return std::nullopt;
  }
  std::tm then = {};
  then.tm_year = std::stoi(day.substr(0, 4)) - 1900;
  then.tm_mon = std::stoi(day.substr(5, 2)) - 1;
  then.tm_mday = std::stoi(day.substr(8, 2));
  const std::tm now = fmt::localtime(std::time(nullptr));
  for (const char* form : {"{:%Y-%m-%d}", "{:%d %b %Y}"}) {
    const std::string today = fmt::format(fmt::runtime(form), now), other = fmt::format(fmt::runtime(form), then);
    for (size_t at = text.find(today); at != std::string::npos; at = text.find(today, at + other.size()))
      text.replace(at, today.size(), other);
  }
  return text;
}

// Returns how many texts were compared.
int expect_texts(const ordered_json& golden, const ordered_json& one, const std::string& source) {
  const Template chat(source);
  size_t at = 0;
  for (const ordered_json& messages : golden.at("conversations"))
    for (const ordered_json& way : golden.at("ways")) {
      ordered_json variables = golden.at("variables");
      variables["messages"] = messages;
      variables.update(way);
      const auto text = text_of(chat, variables, golden.at("day"));
      const ordered_json& wanted = one.at("texts").at(at++);
      EXPECT_EQ(text ? ordered_json(hash_of(*text)) : ordered_json(), wanted)
          << one.at("name") << " of " << messages << " " << way << ": " << text.value_or("refused");
    }
  EXPECT_EQ(at, one.at("texts").size());
  return static_cast<int>(at);
}

// Each golden of TRL, or each other one, has its template among those found, which writes what it says.
void expect_published(const Templates& found, bool of_trl) {
  const ordered_json golden = published();
  size_t templates = 0;
  for (const ordered_json& one : golden.at("cases")) {
    const std::string name = one.at("name");
    if (name.starts_with("trl/") != of_trl) continue;
    const auto source = found.find(name);
    ASSERT_NE(source, found.end()) << name;
    ASSERT_EQ(hash_of(source->second), one.at("template").get<std::string>()) << name << " is another template";
    EXPECT_GE(expect_texts(golden, one, source->second), 70);
    ++templates;
  }
  EXPECT_EQ(templates, found.size());
}

// The templates of the shared data and, where bench/peers/texts.sh has installed it, TRL's.
TEST(PublishedTemplates, WriteWhatJinja2Writes) {
  const Templates shared = shared_templates(), of_trl = trl_templates();
  if (!shared.empty()) expect_published(shared, false);
  if (of_trl.empty()) {
    if (shared.empty()) GTEST_SKIP() << "no shared data beside the repository, and no TRL";
    base::log_info("TRL's templates are compared once bench/peers/texts.sh setup has installed them");
    return;
  }
  EXPECT_EQ(of_trl.size(), 72U);
  expect_published(of_trl, true);
}

}  // namespace
}  // namespace collimate::text::jinja
