#include "collimate/host/frame_socket.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "collimate/base/error.h"
#include "collimate/host/child_process.h"
#include "tests/support/host/temp_directory.h"

namespace collimate::host {
namespace {

using base::Deadline;
using ::testing::HasSubstr;

const Deadline kSoon = Deadline::after(60);

struct Ends {
  FrameSocket near;
  FrameSocket far;
};

Ends make_ends(FrameLimits limits = {}) {
  auto [a, b] = FrameSocket::make_pair();
  return {FrameSocket(std::move(a), "rank 1", limits), FrameSocket(std::move(b), "rank 0", limits)};
}

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

std::string text(const std::vector<std::byte>& data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

// Sends raw bytes, closes, and gives what the receiver says.
std::string answer_to(const std::string& raw, FrameLimits limits = {}) {
  auto [a, b] = FrameSocket::make_pair();
  EXPECT_EQ(::send(a.get(), raw.data(), raw.size(), 0), static_cast<ssize_t>(raw.size()));
  a.reset();
  FrameSocket receiver(std::move(b), "rank 0", limits);
  return message_of<base::RunError>([&] { receiver.receive(kSoon); });
}

std::string raw_prefix(uint32_t magic, uint32_t buffers, uint64_t header_bytes) {
  std::string out(16, '\0');
  std::memcpy(out.data(), &magic, 4);
  std::memcpy(out.data() + 4, &buffers, 4);
  std::memcpy(out.data() + 8, &header_bytes, 8);
  return out;
}
constexpr uint32_t kMagic = 0x31464c43;

TEST(FrameSocket, SmallAndLargeFramesKeepOrder) {
  Ends ends = make_ends();
  const std::string big(5 << 20, 'b');
  std::thread sender([&] {
    const std::string small = "abc";
    const std::span<const std::byte> parts[] = {bytes(small), {}, bytes(big)};
    ends.near.send({{"n", 1}}, kSoon);
    ends.near.send({{"n", 2}}, parts, kSoon);
    ends.near.send({{"n", 3}}, std::span(parts, 2), kSoon);
  });
  const Frame first = ends.far.expect_frame(kSoon);
  const Frame second = ends.far.expect_frame(kSoon);
  const Frame third = ends.far.expect_frame(kSoon);
  sender.join();
  EXPECT_EQ(first.header["n"], 1);
  EXPECT_TRUE(first.buffers.empty());
  ASSERT_EQ(second.buffers.size(), 3u);
  EXPECT_EQ(text(second.buffers[0]), "abc");
  EXPECT_TRUE(second.buffers[1].empty());
  EXPECT_EQ(text(second.buffers[2]), big);
  EXPECT_EQ(third.buffers.size(), 2u);
}

TEST(FrameSocket, MemoryGrowsBeyondWhatIsTrusted) {
  Ends ends = make_ends();
  std::string big(40 << 20, 'x');
  big.back() = 'y';
  std::thread sender([&] {
    const std::span<const std::byte> part = bytes(big);
    ends.near.send({}, std::span(&part, 1), kSoon);
  });
  const Frame frame = ends.far.expect_frame(kSoon);
  sender.join();
  ASSERT_EQ(frame.buffers[0].size(), big.size());
  EXPECT_EQ(std::memcmp(frame.buffers[0].data(), big.data(), big.size()), 0);
}

TEST(FrameSocket, ClosedBetweenFramesIsTheEnd) {
  Ends ends = make_ends();
  ends.near.send({{"last", true}}, kSoon);
  ends.near.close();
  EXPECT_TRUE(ends.far.receive(kSoon));
  EXPECT_FALSE(ends.far.receive(kSoon));
  EXPECT_EQ(message_of<base::RunError>([&] { ends.far.expect_frame(kSoon); }),
            "[frame from rank 0] expected a frame, got the end of the connection: the peer closed it or died");
  EXPECT_EQ(message_of<base::RunError>([&] { ends.far.send({}, kSoon); }),
            "[frame to rank 0] expected an open connection, got Broken pipe");
}

TEST(FrameSocket, ClosedInsideAFrameIsAnError) {
  const std::string expected =
      "[frame from rank 0] expected a whole frame, got the end of the connection: the peer closed it or died";
  EXPECT_EQ(answer_to(raw_prefix(kMagic, 0, 10).substr(0, 7)), expected);
  EXPECT_EQ(answer_to(raw_prefix(kMagic, 0, 10) + "{}"), expected);
  EXPECT_EQ(answer_to(raw_prefix(kMagic, 2, 2) + "12345678"), expected);
}

TEST(FrameSocket, HostileFramesAreRefused) {
  EXPECT_EQ(answer_to("GET / HTTP/1.1\r\n\r\n"),
            "[frame from rank 0] expected the magic number of a frame, got 0x20544547");
  EXPECT_EQ(answer_to(raw_prefix(kMagic, 0, 1ULL << 60)),
            "[frame from rank 0] expected a header of at most 67108864 bytes, got 1152921504606846976");
  EXPECT_EQ(answer_to(raw_prefix(kMagic, 0xffffffff, 2)),
            "[frame from rank 0] expected at most 65536 buffers, got 4294967295");
  EXPECT_EQ(answer_to(raw_prefix(kMagic, 1, 2) + std::string(8, '\xff')),
            "[frame from rank 0] expected at most 17179869184 bytes, got a longer frame");
  std::string sizes(16, '\0');
  sizes[7] = sizes[15] = '\x7f';  // each below 2^63, their sum beyond any limit
  EXPECT_THAT(answer_to(raw_prefix(kMagic, 2, 2) + sizes, {.total_bytes = ~0ULL >> 1}), HasSubstr("a longer frame"));
  EXPECT_EQ(answer_to(raw_prefix(kMagic, 0, 3) + "{a}"),
            "[frame from rank 0] expected a JSON header, got malformed text");
}

TEST(FrameSocket, DeadlinesSayWhoWaitsForWhom) {
  Ends ends = make_ends();
  EXPECT_FALSE(ends.far.readable(Deadline::after(0)));
  EXPECT_EQ(message_of<base::RunError>([&] { ends.far.receive(Deadline::after(0.01)); }),
            "[frame from rank 0] expected data within 0.01 s, got none: we wait for rank 0");
  const std::string big(8 << 20, 'x');
  const std::span<const std::byte> part = bytes(big);
  EXPECT_EQ(message_of<base::RunError>([&] { ends.near.send({}, std::span(&part, 1), Deadline::after(0.05)); }),
            "[frame to rank 1] expected the peer to read within 0.05 s, got no progress: we wait for rank 1");
}

// With no descriptors allowed, poll fails at once, as it does without memory.
TEST(FrameSocket, AFailureToWaitIsAnError) {
  const Ends ends = make_ends();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string error = message_of<base::RunError>([&] { ends.near.readable(kSoon); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(error, HasSubstr("[poll] expected to wait for a peer"));
}

TEST(FrameSocket, ThroughPipesOfAChild) {
  ChildProcess child({.command = {"cat"}});
  auto [read_from, write_to] = child.release_pipes();
  FrameSocket socket(std::move(read_from), std::move(write_to), "cat");
  const std::string payload(100'000, 'p');
  const std::span<const std::byte> part = bytes(payload);
  socket.send({{"echo", "this"}}, std::span(&part, 1), kSoon);
  const Frame frame = socket.expect_frame(kSoon);
  EXPECT_EQ(frame.header["echo"], "this");
  EXPECT_EQ(text(frame.buffers[0]), payload);
  child.kill();
  EXPECT_FALSE(socket.receive(kSoon)) << "a killed child is the end of its stream";
  EXPECT_EQ(message_of<base::RunError>([&] { socket.send({}, kSoon); }),
            "[frame to cat] expected an open connection, got Broken pipe");
}

TEST(FrameSocket, AnInheritedEndIsNamedByItsNumber) {
  auto [ours, theirs] = FrameSocket::make_pair();
  FrameSocket socket(std::move(ours), "worker");
  FrameSocket inherited = inherited_socket(fmt::format("fd:{}", theirs.release()), "driver");
  inherited.send({{"hello", 1}}, kSoon);
  EXPECT_EQ(socket.expect_frame(kSoon).header["hello"], 1);
}

TEST(FrameSocket, AddressesOfNoInheritedEndAreRefused) {
  for (const std::string address : {"", "fd:", "fd:x", "fd:3x", "fd:1", "fd:99999", "unix:/tmp/socket"})
    EXPECT_EQ(message_of<base::InputError>([&] { inherited_socket(address, "driver"); }),
              "[address] expected fd:N, the number of an open socket, got \"" + address + "\"");
}

}  // namespace
}  // namespace collimate::host
