#include "collimate/cluster/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "collimate/base/error.h"
#include "collimate/cluster/local/thread_worker.h"
#include "collimate/cluster/reparse.h"
#include "tests/support/base/error_of.h"
#include "tests/support/watched_messages.h"

namespace collimate::cluster {

template <>
struct FrameForm<Bytes> {
  static nlohmann::json write(const Bytes& bytes, std::vector<Bytes>& frames) {
    frames.push_back(bytes);
    return true;
  }
  static Bytes read(const nlohmann::json&, const NextFrame& next) { return next(); }
};

namespace {

using testing::HasSubstr;

struct Letter {
  static constexpr const char* kKind = "letter";
  int64_t number = 0;
  Bytes body;
  COLLIMATE_FIELDS(number, body)
};

// Asks the Counter below for letters, or to end with an error.
struct Count {
  static constexpr const char* kKind = "count";
  bool fails = false;
  COLLIMATE_FIELDS(fails)
};

// A kind that nobody here knows.
struct Song {
  static constexpr const char* kKind = "song";
  static void fields(auto&, auto&&) {}
};

using Said = std::variant<Ready, Died, Letter, Count>;

template <class T>
T said(std::optional<Message> message) {
  return std::get<T>(content_of<Said>(std::move(message.value())));
}

Message letter(int64_t number) { return message_of(Letter{number, {}}); }
Message count(uint64_t incarnation = 1) { return message_of(Count(), incarnation); }

// Answers each Count with `replies` letters, and writes one for each of `steps` pieces of stream work.
class Counter : public Handler {
 public:
  Counter(int replies, int steps) : replies_(replies), steps_(steps) {}
  void handle(Message message, Outbox& out) override {
    if (said<Count>(std::move(message)).fails) throw base::GuardError("[counter] told to");
    for (int i = 0; i < replies_; ++i) out.send(letter(next_++));
  }
  bool step(Outbox& out) override {
    if (steps_ == 0) return false;
    --steps_;
    out.send(letter(-1));
    return true;
  }

 private:
  int replies_, steps_, next_ = 0;
};

HandlerFactory counter(int replies, int steps) {
  return [=](const WorkerSpec&) { return std::make_unique<Counter>(replies, steps); };
}

struct Rig {
  Rig(size_t capacity, const HandlerFactory& factory) : driver(std::make_shared<Mailbox>(capacity)) {
    WorkerSpec spec;
    spec.rank = 3;
    spec.incarnation = 1;
    link = start_thread_worker(spec, factory, capacity, driver);
    driver->on_space([this] { link->inbox().poke(); });
    EXPECT_EQ(driver->pop(5)->kind(), "ready");
  }
  ~Rig() {
    driver->close();
    link->stop(5);
  }
  void send(Message message) {
    while (!link->inbox().try_push(message)) std::this_thread::yield();
  }
  // A pop may end early: the worker pokes when its inbox has space.
  std::optional<Message> receive() {
    for (int turn = 0; turn < 100; ++turn)
      if (std::optional<Message> message = driver->pop(5)) return message;
    return std::nullopt;
  }
  std::shared_ptr<Mailbox> driver;
  std::unique_ptr<WorkerLink> link;
};

TEST(Message, SurvivesTheWire) {
  const Letter content{5, {std::byte{1}, std::byte{2}}};
  Message message = message_of(content, 9);
  message.sender = 4;
  const test::WatchedMessages watched;
  Message parsed = reparse(message);
  EXPECT_EQ(watched.of_workers(), 1);
  EXPECT_EQ(parsed.kind(), "letter");
  EXPECT_EQ(parsed.sender, 4);
  EXPECT_EQ(parsed.incarnation, 9U);
  EXPECT_FALSE(parsed.content);
  ASSERT_EQ(parsed.wire.frames.size(), 1U);
  EXPECT_EQ(reparse(parsed).wire.frames, parsed.wire.frames);
  const auto back = said<Letter>(std::move(parsed));
  EXPECT_EQ(back.number, 5);
  EXPECT_EQ(back.body, content.body);
  EXPECT_EQ(said<Letter>(std::move(message)).body, content.body) << "between threads";
  reparse(count());  // the driver's
  EXPECT_EQ(watched.of_driver(), 1);
  EXPECT_EQ(watched.of_workers(), 2);
  EXPECT_THROW(from_wire({nlohmann::json::array(), {}}), base::RunError);
  for (const char* key : {"sender", "incarnation"}) {
    Wire wire = to_wire(count());
    wire.header[key] = "1";
    EXPECT_THROW(from_wire(std::move(wire)), base::RunError) << key;
  }
}

TEST(Message, OfAnotherKindIsRefusedWithTheSendersName) {
  const auto refused = [](Message message) {
    return base::message_of<base::RunError>([&] { said<Letter>(std::move(message)); });
  };
  Message song = message_of(Song());
  EXPECT_THAT(refused(reparse(song)), HasSubstr("[message 'song' of the driver] expected one of ready, died, letter"));
  song.sender = 3;
  EXPECT_THAT(refused(std::move(song)), HasSubstr("[message 'song' of worker 3]"));
  for (const nlohmann::json& header : {nlohmann::json(), nlohmann::json("letter"), nlohmann::json{{"kind", 1}}}) {
    Message broken;
    broken.wire.header = header;
    EXPECT_THAT(refused(std::move(broken)), HasSubstr("[message '' of the driver]"));
  }
}

TEST(Mailbox, IsFirstInFirstOutAndBounded) {
  Mailbox box(2);
  Message a = letter(1), b = letter(2), c = letter(3);
  EXPECT_TRUE(box.try_push(a));
  EXPECT_TRUE(box.try_push(b));
  EXPECT_FALSE(box.try_push(c));
  EXPECT_TRUE(c.content);
  EXPECT_EQ(said<Letter>(box.pop(1)).number, 1);
  EXPECT_TRUE(box.try_push(c));
  EXPECT_EQ(said<Letter>(box.pop(1)).number, 2);
  EXPECT_EQ(said<Letter>(box.pop(1)).number, 3);
  EXPECT_FALSE(box.pop(0.001));
  box.poke();
  EXPECT_FALSE(box.pop(100));  // returns at once
}

TEST(Mailbox, TestsHearTheMostOfAllMailboxesAndMakeThemSmaller) {
  Mailbox one(1), two(2);
  Message a = letter(1), b = letter(2), c = letter(3);
  const test::WatchedMessages watched(1);
  EXPECT_TRUE(one.try_push(a));
  EXPECT_FALSE(one.try_push(b));
  EXPECT_EQ(watched.most_held(), 1);
  EXPECT_TRUE(two.try_push(b));
  EXPECT_TRUE(two.try_push(c));
  EXPECT_EQ(watched.most_held(), 2);
  EXPECT_EQ(test::WatchedMessages().most_held(), 0);
  Mailbox asked_for_two(2);
  Message d = letter(4), e = letter(5);
  EXPECT_TRUE(asked_for_two.try_push(d));
  EXPECT_FALSE(asked_for_two.try_push(e));
}

TEST(Worker, AnswersInOrderThroughFullQueues) {
  Rig rig(1, counter(5, 0));
  std::thread sender([&] {
    for (int i = 0; i < 20; ++i) rig.send(count());
  });
  for (int i = 0; i < 100; ++i) {
    std::optional<Message> message = rig.receive();
    ASSERT_TRUE(message);
    EXPECT_EQ(message->sender, 3);
    EXPECT_EQ(said<Letter>(std::move(message)).number, i);
  }
  sender.join();
}

TEST(Worker, StepsItsStreamsBetweenMessages) {
  Rig rig(4, counter(1, 3));
  rig.send(count());
  int steps = 0, replies = 0;
  while (steps < 3 || replies < 1) {
    std::optional<Message> message = rig.receive();
    ASSERT_TRUE(message);
    said<Letter>(std::move(message)).number < 0 ? ++steps : ++replies;
  }
}

TEST(Worker, IgnoresMessagesOfAnotherIncarnation) {
  Rig rig(4, counter(1, 0));
  rig.send(count(7));
  rig.send(count());
  EXPECT_EQ(said<Letter>(rig.receive()).number, 0);
  for (int turn = 0; turn < 5; ++turn) EXPECT_FALSE(rig.driver->pop(0.01));
}

TEST(Worker, ReportsItsOwnDeath) {
  Rig rig(4, counter(1, 0));
  rig.send(message_of(Count{.fails = true}, 1));
  const auto died = said<Died>(rig.receive());
  EXPECT_EQ(died.cause, "[counter] told to");
  EXPECT_EQ(died.exit_code, 4);
  EXPECT_FALSE(died.lost);
}

TEST(WorkerSpec, TextAndBack) {
  WorkerSpec spec{"{}", "graph", "placement", "{\"seed\":1}", 2, 5};
  const test::WatchedMessages watched;
  EXPECT_EQ(nlohmann::json(reparse(spec)), nlohmann::json(spec));
  EXPECT_EQ(watched.specs(), 1);
}

}  // namespace
}  // namespace collimate::cluster
