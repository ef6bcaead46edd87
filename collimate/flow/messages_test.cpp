#include "collimate/flow/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <type_traits>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/cluster/reparse.h"
#include "collimate/flow/driver.h"
#include "tests/support/base/error_of.h"

namespace collimate::flow {
namespace {

using testing::HasSubstr;

// Gives every field of a message another value than its default, each a different one.
class Filler {
 public:
  void operator()(const char*, auto& field) { fill(field); }

 private:
  void fill(bool& field) { field = !field; }
  void fill(int& field) { field = ++next_; }
  void fill(int64_t& field) { field = ++next_; }
  void fill(uint64_t& field) { field = uint64_t{1} << 63 | static_cast<uint64_t>(++next_); }
  void fill(double& field) { field = ++next_ + 0.1; }
  void fill(std::string& field) { field = fmt::format("text {}", ++next_); }
  void fill(nlohmann::json& field) { field = {{"a", ++next_}, {"b", nullptr}}; }
  void fill(graph::Task& field) { field = {++next_, ++next_, ++next_, ++next_, ++next_}; }
  void fill(Metric& field) { field = {"metric", ++next_ + 0.1, Reduce::kMax, 2.0, "note"}; }
  void fill(Batch& field) {
    field = Batch(2);
    field.set(batch::kUid, std::vector<int64_t>{++next_, ++next_});
  }
  void fill(std::shared_ptr<const WeightBucket>& field) {
    field = std::make_shared<WeightBucket>(
        WeightBucket{3, 7, {{{4, {1, 2, 3, 1}}, ~uint64_t{7}}, {{5, {0, 1, 0, 0}}, 0}}, {1.0F, -0.1F}});
  }
  template <base::HasFields T>
  void fill(T& field) {
    T::fields(field, *this);
  }
  template <class T>
  void fill(std::optional<T>& field) {
    fill(field.emplace());
  }
  template <class T>
  void fill(std::vector<T>& field) {
    for (int i = 0; i < 2; ++i) fill(field.emplace_back());
  }
  template <class T>
  void fill(std::map<std::string, T>& field) {
    fill(field["one"]);
    fill(field["two"]);
  }

  int next_ = 2;
};

template <class T>
cluster::Message filled(int sender = 3) {
  T content{};
  T::fields(content, Filler());
  cluster::Message message = cluster::message_of(std::move(content), 5);
  message.sender = sender;
  return message;
}

template <class T>
std::vector<std::string> fields_of() {
  std::vector<std::string> names;
  T content{};
  T::fields(content, [&](const char* name, const auto&) { names.push_back(name); });
  return names;
}

// Members of a struct, as many as braces can give values to.
struct AnyValue {
  template <class T>
  operator T() const;  // NOLINT
};
template <class T, class... Values>
constexpr size_t members_of() {
  if constexpr (requires { T{Values()..., AnyValue()}; }) return members_of<T, Values..., AnyValue>();
  return sizeof...(Values);
}

// Runs `check.template operator()<Protocol, T>()` for every kind of message.
template <class Protocol, class Check>
void for_each_kind_of(const Check& check) {
  [&]<class... Kinds>(std::type_identity<std::variant<Kinds...>>) {
    (check.template operator()<Protocol, Kinds>(), ...);
  }(std::type_identity<Protocol>());
}
template <class Check>
void for_each_kind(const Check& check) {
  for_each_kind_of<message::ToWorker>(check);
  for_each_kind_of<message::ToDriver>(check);
}

template <class Protocol>
cluster::Wire sent_on(Protocol content) {
  return std::visit([](auto& said) { return to_wire(cluster::message_of(std::move(said))); }, content);
}

TEST(Messages, ArriveAsTheyWereSent) {
  for_each_kind([]<class Protocol, class T>() {
    SCOPED_TRACE(T::kKind);
    const cluster::Message sent = filled<T>();
    const cluster::Wire wire = sent.content->to_wire();
    const T before{};
    T::fields(before, [&]<class Field>(const char* name, const Field& field) {
      if constexpr (!cluster::HasFrameForm<Field>) {
        EXPECT_NE(wire.header.at(name), nlohmann::json(field)) << name;
      }
    });
    for (const bool between_processes : {false, true}) {
      auto arrived = cluster::content_of<Protocol>(between_processes ? cluster::reparse(sent) : filled<T>());
      ASSERT_TRUE(std::holds_alternative<T>(arrived));
      const cluster::Wire again = sent_on(std::move(arrived));
      EXPECT_EQ(again.header.at("content"), wire.header);
      EXPECT_EQ(again.frames, wire.frames);
    }
  });
}

TEST(Messages, NameEveryMemberAsAFieldAndAreToldApartByTheirKind) {
  std::set<std::string> kinds[2];
  for_each_kind([&]<class Protocol, class T>() {
    EXPECT_EQ(fields_of<T>().size(), members_of<T>()) << T::kKind;
    const bool to_driver = std::is_same_v<Protocol, message::ToDriver>;
    EXPECT_TRUE(kinds[to_driver].insert(T::kKind).second) << T::kKind;
  });
}

template <class Protocol>
std::string refusal(cluster::Wire content) {
  cluster::Message message;
  message.sender = 3;
  message.wire = std::move(content);
  return base::message_of<base::RunError>([&] { cluster::content_of<Protocol>(std::move(message)); });
}

TEST(Messages, WithAMissingFieldOrOneOfAnotherTypeAreRefused) {
  for_each_kind([]<class Protocol, class T>() {
    const cluster::Wire whole = filled<T>().content->to_wire();
    const std::string where = fmt::format("[message '{}' of worker 3] expected ", T::kKind);
    T content{};
    T::fields(content, [&]<class Field>(const char* name, const Field&) {
      cluster::Wire broken = whole;
      broken.header.erase(name);
      EXPECT_THAT(refusal<Protocol>(broken), HasSubstr(fmt::format("{}a field '{}', got none", where, name)));
      if (std::is_same_v<Field, nlohmann::json>) return;
      broken.header[name] = {{"not", "this"}};
      EXPECT_THAT(refusal<Protocol>(broken),
                  HasSubstr(fmt::format("{}a field '{}' that can be read, got {{\"not\":\"this\"}}", where, name)));
    });
    cluster::Wire more = whole;
    more.frames.emplace_back();
    EXPECT_THAT(refusal<Protocol>(more), HasSubstr(fmt::format("{}{} frames", where, whole.frames.size())));
    if (whole.frames.empty()) return;
    cluster::Wire fewer = whole;
    fewer.frames.pop_back();
    EXPECT_THAT(refusal<Protocol>(fewer), HasSubstr(where + "a field '"));
  });
}

TEST(Messages, OfAKindThatTheReceiverDoesNotKnowAreRefused) {
  const cluster::Wire rows = filled<message::Rows>().content->to_wire();
  EXPECT_EQ(refusal<message::ToDriver>(rows), "");
  const std::string error = refusal<message::ToWorker>(rows);
  EXPECT_THAT(error, HasSubstr("[message 'rows' of worker 3] expected one of puts, start, feed, "));
  EXPECT_THAT(error, HasSubstr("; try the same version of Collimate on both sides"));
}

TEST(Messages, AnAnswerIsTheOneThatTheRequestAsksFor) {
  EXPECT_EQ(answer_to<message::Export>({2, message::Exported{1, 9}}).checksum, 9U);
  const std::string error = base::message_of<base::RunError>([] { answer_to<message::Export>({2, message::Done{1}}); });
  EXPECT_THAT(error, HasSubstr("[answer of worker 2 to 'export'] expected exported, got another kind"));
}

}  // namespace
}  // namespace collimate::flow
