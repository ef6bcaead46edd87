// Measures and checks tokenizers, which bench/peers/tokenizing.py and texts.sh compare with other programs:
//   bench_tokenizer speed TOKENIZER_DIRECTORY TEXT ROUNDS THREADS
//   bench_tokenizer equal TOKENIZER_DIRECTORY RECORDS
// speed encodes the lines of a text and decodes them again. It prints one line of JSON: least, median and largest MB/s
// over the rounds, of encoding and of decoding, after one warm-up. equal reads RECORDS, the random texts of
// tests/golden/make_tokenizers.py --random with the ids and the decoded text of the other program. It prints how many
// differ, and the first five of each kind.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/host/file_io.h"
#include "collimate/text/tokenizer.h"

namespace {

namespace base = collimate::base;
namespace text = collimate::text;

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw base::InputError(base::expectation("bench_tokenizer", "a file of text", path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Calls `work(i)` for i below `count` on so many threads and returns the seconds that it took.
template <class Work>
double in_parallel(size_t count, int threads, Work work) {
  constexpr size_t kChunk = 64;
  std::atomic<size_t> next{0};
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&] {
      for (size_t at = next.fetch_add(kChunk); at < count; at = next.fetch_add(kChunk))
        for (size_t i = at; i < std::min(count, at + kChunk); ++i) work(i);
    });
  for (std::thread& thread : running) thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

nlohmann::json spread(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  return {rates.front(), rates[rates.size() / 2], rates.back()};
}

void measure(const std::string& directory, const std::string& path, int rounds, int threads) {
  const auto tokenizer = text::load_tokenizer(directory);
  const std::vector<std::string> lines = lines_of(path);
  std::vector<std::vector<int32_t>> ids(lines.size());
  double megabytes = 0;
  for (const std::string& line : lines) megabytes += static_cast<double>(line.size()) / 1e6;
  std::vector<double> encoded, decoded;
  for (int round = -1; round < rounds; ++round) {
    const double there = in_parallel(lines.size(), threads, [&](size_t i) { ids[i] = tokenizer->encode(lines[i]); });
    std::atomic<size_t> bytes{0};
    const double back =
        in_parallel(lines.size(), threads, [&](size_t i) { bytes += tokenizer->decode(ids[i]).size(); });
    if (round < 0) continue;
    encoded.push_back(megabytes / there);
    decoded.push_back(static_cast<double>(bytes) / 1e6 / back);
  }
  fmt::print("{}\n", nlohmann::json{{"encode", spread(encoded)}, {"decode", spread(decoded)}}.dump());
}

// Takes one record from the front of `rest`: its length in bytes as four bytes, then the bytes. Throws InputError for a
// record that is cut.
std::string_view record(std::string_view& rest) {
  uint32_t size = 0;
  if (rest.size() >= sizeof(size)) std::memcpy(&size, rest.data(), sizeof(size));
  if (rest.size() < sizeof(size) + size)
    throw base::InputError(base::expectation("bench_tokenizer", "whole records", "a cut one"));
  const std::string_view out = rest.substr(sizeof(size), size);
  rest.remove_prefix(sizeof(size) + size);
  return out;
}

// Returns the text as JSON, with U+FFFD for bytes that are not well-formed, as Hugging Face decodes them.
std::string replaced(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

void compare(const std::string& directory, const std::string& path) {
  constexpr int64_t kShown = 5;
  const auto tokenizer = text::load_tokenizer(directory);
  const std::string content = collimate::host::read_file(path);
  int64_t texts = 0, other_ids = 0, other_text = 0;
  for (std::string_view rest = content; !rest.empty(); ++texts) {
    const std::string_view given = record(rest), packed = record(rest), decoded = record(rest);
    std::vector<int32_t> ids(packed.size() / sizeof(int32_t));
    std::memcpy(ids.data(), packed.data(), packed.size());
    const auto own = tokenizer->encode(given, {.add_special = true});
    const std::string back = tokenizer->decode(ids);
    if (own != ids && other_ids++ < kShown)
      fmt::print("ids {}\n  {}\n  {}\n", replaced(given), nlohmann::json(ids).dump(), nlohmann::json(own).dump());
    if (replaced(back) != replaced(decoded) && other_text++ < kShown)
      fmt::print("text {}\n  {}\n  {}\n", replaced(given), replaced(decoded), replaced(back));
  }
  fmt::print("{} texts: {} with other ids, {} with another decoded text\n", texts, other_ids, other_text);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 5 && words[0] == "speed") {
      measure(words[1], words[2], std::stoi(words[3]), std::stoi(words[4]));
    } else if (words.size() == 3 && words[0] == "equal") {
      compare(words[1], words[2]);
    } else {
      throw base::InputError(
          "[bench_tokenizer] expected speed DIRECTORY TEXT ROUNDS THREADS or equal DIRECTORY RECORDS");
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
