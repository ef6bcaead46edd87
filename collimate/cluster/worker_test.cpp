#include "collimate/cluster/worker.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "collimate/base/error.h"
#include "collimate/cluster/local/thread_worker.h"
#include "collimate/cluster/reparse.h"
#include "collimate/cluster/store.h"
#include "tests/support/watched_messages.h"

namespace collimate::cluster {
namespace {

class Text : public Payload {
 public:
  explicit Text(std::string text) : text_(std::move(text)) {}
  nlohmann::json to_frames(std::vector<std::vector<std::byte>>& frames) const override {
    auto bytes = std::as_bytes(std::span(text_));
    frames.emplace_back(bytes.begin(), bytes.end());
    return {{"text", true}};
  }

 private:
  std::string text_;
};

Message make(const std::string& type, uint64_t incarnation = 1) {
  Message message;
  message.header = {{"type", type}};
  message.incarnation = incarnation;
  return message;
}

// Answers each "count" with `replies` messages; "throw" ends it; counts down `steps` pieces of stream work.
class Counter : public Handler {
 public:
  Counter(int replies, int steps) : replies_(replies), steps_(steps) {}
  void handle(Message message, Outbox& out) override {
    if (message.type() == "throw") throw base::GuardError("[counter] told to");
    for (int i = 0; i < replies_; ++i) {
      Message reply = make("reply");
      reply.header["number"] = next_++;
      out.send(std::move(reply));
    }
  }
  bool step(Outbox& out) override {
    if (steps_ == 0) return false;
    --steps_;
    out.send(make("step"));
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
    EXPECT_EQ(driver->pop(5)->type(), "ready");
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
  Message message = make("feed", 9);
  message.sender = 4;
  message.payload = std::make_shared<Text>("frames");
  const test::WatchedMessages watched;
  Message parsed = reparse(message);
  EXPECT_EQ(watched.of_workers(), 1);
  EXPECT_EQ(parsed.type(), "feed");
  EXPECT_EQ(parsed.sender, 4);
  EXPECT_EQ(parsed.incarnation, 9U);
  EXPECT_FALSE(parsed.payload);
  EXPECT_TRUE(parsed.payload_header.at("text"));
  ASSERT_EQ(parsed.frames.size(), 1U);
  EXPECT_EQ(std::memcmp(parsed.frames[0].data(), "frames", 6), 0);
  EXPECT_EQ(reparse(parsed).frames, parsed.frames);
  reparse(make("start"));  // the driver's
  EXPECT_EQ(watched.of_driver(), 1);
  EXPECT_EQ(watched.of_workers(), 2);
  EXPECT_THROW(from_wire({nlohmann::json::array(), {}}), base::RunError);
}

TEST(Mailbox, IsFirstInFirstOutAndBounded) {
  Mailbox box(2);
  Message a = make("a"), b = make("b"), c = make("c");
  EXPECT_TRUE(box.try_push(a));
  EXPECT_TRUE(box.try_push(b));
  EXPECT_FALSE(box.try_push(c));
  EXPECT_EQ(c.type(), "c");
  EXPECT_EQ(box.pop(1)->type(), "a");
  EXPECT_TRUE(box.try_push(c));
  EXPECT_EQ(box.pop(1)->type(), "b");
  EXPECT_EQ(box.pop(1)->type(), "c");
  EXPECT_FALSE(box.pop(0.001));
  box.poke();
  EXPECT_FALSE(box.pop(100));  // returns at once
}

TEST(Mailbox, TestsHearTheMostOfAllMailboxesAndMakeThemSmaller) {
  Mailbox one(1), two(2);
  Message a = make("a"), b = make("b"), c = make("c");
  const test::WatchedMessages watched(1);
  EXPECT_TRUE(one.try_push(a));
  EXPECT_FALSE(one.try_push(b));
  EXPECT_EQ(watched.most_held(), 1);
  EXPECT_TRUE(two.try_push(b));
  EXPECT_TRUE(two.try_push(c));
  EXPECT_EQ(watched.most_held(), 2);
  EXPECT_EQ(test::WatchedMessages().most_held(), 0);
  Mailbox asked_for_two(2);
  Message d = make("d"), e = make("e");
  EXPECT_TRUE(asked_for_two.try_push(d));
  EXPECT_FALSE(asked_for_two.try_push(e));
}

TEST(Worker, AnswersInOrderThroughFullQueues) {
  Rig rig(1, counter(5, 0));
  std::thread sender([&] {
    for (int i = 0; i < 20; ++i) rig.send(make("count"));
  });
  for (int i = 0; i < 100; ++i) {
    std::optional<Message> message = rig.receive();
    ASSERT_TRUE(message);
    EXPECT_EQ(message->header.at("number"), i);
    EXPECT_EQ(message->sender, 3);
  }
  sender.join();
}

TEST(Worker, StepsItsStreamsBetweenMessages) {
  Rig rig(4, counter(1, 3));
  rig.send(make("count"));
  int steps = 0, replies = 0;
  while (steps < 3 || replies < 1) {
    std::optional<Message> message = rig.receive();
    ASSERT_TRUE(message);
    message->type() == "step" ? ++steps : ++replies;
  }
}

TEST(Worker, IgnoresMessagesOfAnotherIncarnation) {
  Rig rig(4, counter(1, 0));
  rig.send(make("count", 7));
  rig.send(make("count", 1));
  EXPECT_EQ(rig.receive()->header.at("number"), 0);
  for (int turn = 0; turn < 5; ++turn) EXPECT_FALSE(rig.driver->pop(0.01));
}

TEST(Worker, ReportsItsOwnDeath) {
  Rig rig(4, counter(1, 0));
  rig.send(make("throw"));
  std::optional<Message> message = rig.receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->type(), "died");
  EXPECT_EQ(message->header.at("cause"), "[counter] told to");
  EXPECT_EQ(message->header.at("exit_code"), 4);
}

TEST(WorkerSpec, TextAndBack) {
  WorkerSpec spec{"{}", "graph", "placement", "{\"seed\":1}", 2, 5};
  const test::WatchedMessages watched;
  EXPECT_EQ(nlohmann::json(reparse(spec)), nlohmann::json(spec));
  EXPECT_EQ(watched.specs(), 1);
}

TEST(Store, ServesWhatWasSetAndNamesWhatWasNot) {
  MemoryStore store;
  std::thread setter([&] { store.set("address", "here"); });
  EXPECT_EQ(store.get("address", 5), "here");
  setter.join();
  EXPECT_EQ(store.add("joined", 2), 2);
  EXPECT_EQ(store.add("joined", 1), 3);
  EXPECT_THROW(store.get("nothing", 0.01), base::RunError);
}

}  // namespace
}  // namespace collimate::cluster
