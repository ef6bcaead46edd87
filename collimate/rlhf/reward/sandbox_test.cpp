// Attempts of a reward function to reach beyond its sandbox, or to hold up who asks it.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/host/child_process.h"
#include "collimate/rlhf/reward/python_process.h"
#include "collimate/rlhf/reward/python_reward.h"
#include "tests/support/base/error_of.h"

namespace collimate::rlhf {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSecret = "the-secret-of-the-run";

// The text of both files of attempts.
std::string attempts_text() {
  std::string text;
  for (const char* name : {"attempts.py", "attempts_on_limits.py"}) {
    std::ifstream file(std::string(COLLIMATE_SOURCE_DIR "/collimate/rlhf/reward/testdata/") + name);
    text += std::string{std::istreambuf_iterator<char>(file), {}} + "\n";
  }
  return text;
}

// One function of them; its first line says the rest.
struct Attempt {
  std::string name;
  bool fails = false;  // its sample; else it gives 0
  std::string error;   // a part of it
  bool open = false;   // without a sandbox
};

std::vector<Attempt> attempts(bool open_ones) {
  const std::regex form(R"(def (\w+)\(at\):  # (held|fails)(, open)?(: (.*))?)");
  std::istringstream file(attempts_text());
  std::vector<Attempt> found;
  std::smatch parts;
  for (std::string line; std::getline(file, line);)
    if (std::regex_match(line, parts, form) && (parts[3].matched || !open_ones))
      found.push_back({parts[1], parts[2] == "fails", parts[5], parts[3].matched});
  return found;
}

// Gives a socket of any family that somebody outside listens on.
host::FileDescriptor listening(const sockaddr* address, socklen_t size) {
  host::FileDescriptor socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(socket.get(), address, size) != 0 || ::listen(socket.get(), 8) != 0)
    throw std::runtime_error("no socket to listen on");
  return socket;
}

host::FileDescriptor listening_unix(const std::string& name, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string bytes = path.empty() ? std::string(1, '\0') + name : path;
  bytes.copy(address.sun_path, sizeof address.sun_path);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes.size());
  return listening(reinterpret_cast<const sockaddr*>(&address), size);
}

// A machine around the sandbox: a secret in files, variables and another process, servers, and a run's directory.
class SandboxFixture : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / fmt::format("collimate_sandbox_{}", getpid());
    fs::remove_all(root_);
    for (const char* name : {"reward", "run", "elsewhere"}) fs::create_directories(root_ / name);
    for (const char* name : {"reward/.token", "elsewhere/secret", "run/metrics.jsonl"})
      std::ofstream(root_ / name) << kSecret;
    ::setenv("COLLIMATE_TEST_SECRET", kSecret, 1);
    host::ChildOptions victim{.command = {"sleep", "1000"}};
    victim_ = std::make_unique<host::ChildProcess>(victim);
    sockaddr_in loopback{};
    loopback.sin_family = AF_INET;
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server_ = listening(reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback);
    socklen_t size = sizeof loopback;
    ::getsockname(server_.get(), reinterpret_cast<sockaddr*>(&loopback), &size);
    port_ = ntohs(loopback.sin_port);
    abstract_ = listening_unix(abstract_name(), "");
    named_ = listening_unix("", (root_ / "reward/socket").string());
  }
  void TearDown() override {
    ::unsetenv("COLLIMATE_TEST_SECRET");
    victim_.reset();
    fs::remove_all(root_);
  }

  static std::string abstract_name() { return fmt::format("collimate_sandbox_{}", getpid()); }

  // With a function of its own, `attempt`.
  PythonSection section(const std::string& body = "") const {
    std::ofstream(root_ / "reward/reward.py") << attempts_text() << body;
    PythonSection options;
    options.python = (root_ / "reward/reward.py").string();
    options.timeout_seconds = 60.0;
    options.batch_samples = 1;
    options.memory_gib = 0.25;
    options.processes = 32;
    options.cpu_seconds = 1;
    return options;
  }

  RewardSample sample(const std::string& completion) const {
    return {1,
            "p",
            completion,
            {{"secret", kSecret},
             {"root", root_.string()},
             {"pid", getpid()},
             {"victim", victim_->pid()},
             {"port", port_},
             {"abstract", abstract_name()}}};
  }

  // All outside stays as it was.
  void expect_untouched() {
    EXPECT_FALSE(victim_->poll()) << "the other process was killed";
    size_t entries = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) entries += entry.is_regular_file() ? 1 : 0;
    EXPECT_EQ(entries, 4U) << "files came or went";
    std::string text;
    std::getline(std::ifstream(root_ / "run/metrics.jsonl"), text);
    EXPECT_EQ(text, kSecret);
    const auto deadline = base::Deadline::after(20);  // the kernel ends them behind the one that was waited for
    while (processes_named(marker()) > 0 && !deadline.expired())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(processes_named(marker()), 0) << "processes are left";
  }

  // The first word of each command that an attempt leaves behind.
  static std::string marker() { return "collimate_left_behind"; }
  static int processes_named(const std::string& word) {
    int found = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::string command;
      std::getline(std::ifstream(entry.path() / "cmdline"), command);
      found += command.starts_with(word) ? 1 : 0;
    }
    return found;
  }

  fs::path root_;
  int port_ = 0;
  host::FileDescriptor server_, abstract_, named_;
  std::unique_ptr<host::ChildProcess> victim_;
};

class SandboxTest : public SandboxFixture, public testing::WithParamInterface<Attempt> {};

// Either the function says that it did not get there, or its sample fails; in both cases the next sample is scored.
TEST_P(SandboxTest, DoesNotGetOut) {
  {
    PythonSection options = section();
    if (GetParam().fails) options.timeout_seconds = 2.0;  // some wait for its end
    const auto reward = python_reward(options);
    const auto results = reward->score({sample(GetParam().name), sample("Honest")});
    if (!GetParam().fails) {
      EXPECT_EQ(results[0].value, 0.0) << results[0].error;
    } else {
      EXPECT_FALSE(results[0].value) << *results[0].value;
      EXPECT_THAT(results[0].error, testing::HasSubstr(GetParam().error));
    }
    EXPECT_EQ(results[1].value, 7.0) << results[1].error;
  }
  expect_untouched();
}

// The attempts are real ones: without a sandbox those that harm nothing succeed.
class WithoutSandboxTest : public SandboxTest {};
TEST_P(WithoutSandboxTest, GetsThere) {
  PythonSection options = section();
  options.sandbox = PythonSection::kNoSandbox;
  EXPECT_EQ(python_reward(options)->score({sample(GetParam().name)})[0].value, 1.0);
}

std::string name_of(const testing::TestParamInfo<Attempt>& info) { return info.param.name; }

// gtest prints it where a test fails.
void PrintTo(const Attempt& attempt, std::ostream* out) { *out << attempt.name; }

INSTANTIATE_TEST_SUITE_P(Attempts, SandboxTest, testing::ValuesIn(attempts(false)), name_of);
INSTANTIATE_TEST_SUITE_P(Attempts, WithoutSandboxTest, testing::ValuesIn(attempts(true)), name_of);

// A reward may do this, by default or where it is allowed by name.
class AllowedTest : public SandboxFixture {
 protected:
  double value_of(const PythonSection& options) {
    const RewardResult result = python_reward(options)->score({sample("attempt")})[0];
    EXPECT_TRUE(result.value) << result.error;
    return result.value.value_or(-1);
  }
};

TEST_F(AllowedTest, FilesBesideItAndAPrivateDirectory) {
  std::ofstream(root_ / "reward/words.txt") << "seven";
  std::ofstream(root_ / "reward/helper.py")
      << "def words():\n    import os\n    return open(os.path.dirname(__file__) + "
         "'/words.txt').read()\n";
  EXPECT_EQ(value_of(section("def attempt(at):\n"
                             "    import helper, tempfile\n"
                             "    with tempfile.NamedTemporaryFile('w+') as file:\n"
                             "        print('kept', file=file)\n"
                             "    done = subprocess.run(['sh', '-c', 'echo $((3 + 4)) > /tmp/x; cat /tmp/x'],\n"
                             "                          capture_output=True, text=True)\n"
                             "    return helper.words() == 'seven' and done.stdout == '7\\n'\n")),
            1.0);
}

TEST_F(AllowedTest, RelativePathsBeginInTheDirectoryOfTheProgram) {
  EXPECT_EQ(value_of(section(fmt::format("def attempt(at):\n    return os.getcwd() == {}\n",
                                         nlohmann::json(fs::current_path().string()).dump()))),
            1.0);
}

// A reward's file may be a link, and the file of another user: as root we read that too.
TEST_F(AllowedTest, ALinkToTheFileOfAnotherUser) {
  PythonSection options = section("def attempt(at):\n    return 1\n");
  const fs::path file = rlhf::python_function(options.python).file, moved = root_ / "moved/attempt.py";
  fs::create_directories(moved.parent_path());
  fs::rename(file, moved);
  fs::create_symlink("../moved/attempt.py", file);
  fs::permissions(moved, fs::perms::owner_read);
  if (geteuid() == 0) {
    ASSERT_EQ(::chown(moved.c_str(), 1000, 1000), 0);
    ASSERT_EQ(::chown(moved.parent_path().c_str(), 4711, 4711), 0);
  }
  fs::permissions(moved.parent_path(), fs::perms::owner_all);
  EXPECT_EQ(value_of(options), 1.0);
}

// A path of Python's may be a project: what begins with a dot in it stays hidden.
TEST_F(AllowedTest, NoHiddenFilesByThePathOfPython) {
  fs::create_directories(root_ / "project");
  std::ofstream(root_ / "project/.env") << kSecret;
  std::ofstream(root_ / "project/mine.py") << "x = 1";
  ::setenv("PYTHONPATH", (root_ / "project").c_str(), 1);
  EXPECT_EQ(value_of(section("def attempt(at):\n"
                             "    import mine\n"
                             "    return open(at['root'] + '/project/.env').read() == ''\n")),
            1.0);
  ::unsetenv("PYTHONPATH");
}

TEST_F(AllowedTest, VariablesByName) {
  PythonSection options = section("def attempt(at):\n    return os.environ['COLLIMATE_TEST_SECRET'] == at['secret']\n");
  options.environment = {"COLLIMATE_TEST_SECRET"};
  EXPECT_EQ(value_of(options), 1.0);
}

TEST_F(AllowedTest, OtherDirectoriesReadOnly) {
  PythonSection options = section(
      "def attempt(at):\n"
      "    path = at['root'] + '/elsewhere/'\n"
      "    try:\n"
      "        open(path + 'new', 'w')\n"
      "    except OSError:\n"
      "        return open(path + 'secret').read() == at['secret']\n");
  options.readable = {(root_ / "elsewhere").string()};
  EXPECT_EQ(value_of(options), 1.0);
  options.readable = {(root_ / "nowhere").string()};
  EXPECT_THAT(base::message_of([&] { python_reward(options); }),
              testing::HasSubstr("[reward.readable] expected files and directories that are there, got "));
}

TEST_F(AllowedTest, TheNetwork) {
  PythonSection options =
      section("def attempt(at):\n    return socket.create_connection(('127.0.0.1', at['port']), 1)\n");
  options.network = true;
  EXPECT_EQ(value_of(options), 1.0);
}

TEST_F(AllowedTest, WithoutASandboxNothingOfItIsAsked) {
  PythonSection options = section("def attempt(at):\n    return 1\n");
  options.sandbox = PythonSection::kNoSandbox;
  options.network = true;
  EXPECT_THAT(base::message_of([&] { options.check_section("reward"); }),
              testing::HasSubstr("reward.network to be nothing with sandbox: none"));
}

// A sandbox in a sandbox is one that the kernel refuses.
TEST_F(AllowedTest, NoSandboxWhereTheKernelRefusesOne) {
  EXPECT_EQ(value_of(section(R"(
def attempt(at):
    import json
    launcher = os.environ['PYTHONPATH'].split(':')[0] + '/collimate/sandbox.py'
    request = {'network': False, 'environment': [], 'variables': {}, 'readable': [], 'files': [__file__],
               'directory': '/', 'memory': 1 << 28, 'scratch': 1 << 26, 'processes': 8, 'cpu': 1}
    hello = struct.pack('<IIQ', 0x31464c43, 0, 2) + b'{}'
    done = subprocess.run([sys.executable, '-I', launcher, json.dumps(request), '-c', 'print(7)'], input=hello,
                          capture_output=True)
    return b'"refused": "a kernel that lets this process make namespaces' in done.stdout and b'7' != done.stdout[:1]
)")),
            1.0);
}

TEST_F(AllowedTest, ARefusalSaysWhatMayHelp) {
  PythonSection options = section("def attempt(at): pass");
  std::ofstream(root_ / "reward/python") << R"(#!/usr/bin/env python3
import struct, sys
body = b'{"refused": "a kernel", "got": "none", "remedy": "another"}'
sys.stdout.buffer.write(struct.pack('<IIQ', 0x31464c43, 0, len(body)) + body)
)";
  fs::permissions(root_ / "reward/python", fs::perms::owner_all);
  options.interpreter = (root_ / "reward/python").string();
  EXPECT_EQ(
      base::message_of([&] { python_reward(options); }),
      "[reward.sandbox] expected a kernel, got none; try another, or sandbox: none, with which the function may do "
      "all that you may");
}

TEST_F(AllowedTest, TheOutputOfACallHasAnEnd) {
  const fs::path path = root_ / "elsewhere/secret";
  {
    const base::LogFile log(path);
    EXPECT_EQ(value_of(section("def attempt(at):\n    print(('x' * 99 + '\\n') * 20000)\n    return 1\n")), 1.0);
  }
  EXPECT_LT(fs::file_size(path), 2 << 18);
}

}  // namespace
}  // namespace collimate::rlhf
