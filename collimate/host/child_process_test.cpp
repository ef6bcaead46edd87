#include "collimate/host/child_process.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <thread>

#include "collimate/base/error.h"
#include "tests/support/base/rounds.h"
#include "tests/support/host/run_command.h"
#include "tests/support/host/temp_directory.h"

namespace collimate::host {
namespace {

using base::Deadline;
using ::testing::HasSubstr;

ChildOptions shell(const std::string& script) {
  return {.command = {"sh", "-c", script}, .errors = ChildStream::kNull};
}

CommandResult run(const std::string& script, const std::string& input = "",
                  const Deadline& deadline = Deadline::after(60)) {
  return run_command(shell(script), input, deadline);
}

bool exists(pid_t pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

// A killed orphan stays a zombie until init reaps it, which may take a moment or, in some containers, for ever.
bool alive(pid_t pid) {
  if (!exists(pid)) return false;
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  return stat.substr(stat.rfind(')') + 2, 1) != "Z";
}

bool dies(pid_t pid) {
  for (int i = 0; i < 2000; ++i) {
    try {
      if (!alive(pid)) return true;
    } catch (const base::Error&) {
      return true;  // gone between the two looks
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST(RunCommand, PassesInputAndCollectsBothOutputs) {
  const auto result = run("cat; echo problem >&2; exit 3", "hello");
  EXPECT_EQ(result.output, "hello");
  EXPECT_EQ(result.errors, "problem\n");
  EXPECT_EQ(result.status.code, 3);
  EXPECT_EQ(result.status.description(), "exit code 3");
  EXPECT_FALSE(result.timed_out);
}

TEST(RunCommand, LargeStreamsBothWaysDoNotBlock) {
  const std::string input(1 << 19, 'x');
  const auto result = run("cat; cat /dev/null >&2", input);
  EXPECT_EQ(result.output, input);
  const auto unread = run("exec <&-; echo done", input);
  EXPECT_EQ(unread.output, "done\n");
  EXPECT_TRUE(unread.status.ok());
}

TEST(RunCommand, CutsEndlessOutput) {
  const auto result = run_command(shell("head -c 100000 /dev/zero"), "", Deadline::after(60), 1000);
  EXPECT_EQ(result.output.size(), 1000u);
  EXPECT_TRUE(result.truncated);
  EXPECT_TRUE(result.status.ok());
}

TEST(RunCommand, DeadlineKillsTheWholeGroup) {
  const auto result = run("sleep 1000 & echo $!; wait", "", Deadline::after(2));
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.status.description(), "signal 9 (Killed)");
  EXPECT_TRUE(dies(std::atoi(result.output.c_str()))) << result.output;
}

// A daemon left behind holds the pipes open; the command's end is its end all the same.
TEST(RunCommand, EndsWithItsLeader) {
  const auto result = run("sleep 1000 & echo $!");
  EXPECT_TRUE(result.status.ok());
  EXPECT_FALSE(result.timed_out);
  EXPECT_TRUE(dies(std::atoi(result.output.c_str()))) << result.output;
}

TEST(RunCommand, EnvironmentAndDirectory) {
  ChildOptions options = shell("echo $COLLIMATE_CHILD; pwd");
  options.environment = {{"COLLIMATE_CHILD", "a b"}};
  options.working_directory = "/";
  EXPECT_EQ(run_command(options, "", Deadline::after(60)).output, "a b\n/\n");
}

TEST(ChildProcess, CannotStart) {
  EXPECT_EQ(message_of<base::InputError>([] { ChildProcess({.command = {"collimate-no-such-command"}}); }),
            "[collimate-no-such-command] expected a command that can be started, got No such file or directory");
  ChildOptions options = shell("true");
  options.working_directory = "/absent";
  EXPECT_THROW(ChildProcess{options}, base::InputError);
}

TEST(ChildProcess, WaitPollAndSignal) {
  ChildProcess child(shell("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done"));
  char ready[6];
  ASSERT_EQ(::read(child.output(), ready, sizeof ready), 6);
  EXPECT_EQ(child.poll(), std::nullopt);
  EXPECT_EQ(child.wait(Deadline::after(0.01)), std::nullopt);
  child.signal(SIGTERM);
  const auto status = child.wait(Deadline::after(60));
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 5);
  EXPECT_EQ(child.poll()->code, 5);
  EXPECT_EQ(child.kill().code, 5) << "the end it had stays its end";
}

TEST(ChildProcess, DestructionKillsTheGroupAndLeavesNoZombie) {
  pid_t pid = 0;
  pid_t grandchild = 0;
  {
    ChildProcess child(shell("sleep 1000 & echo $!; wait"));
    pid = child.pid();
    char text[32] = {};
    ASSERT_GT(::read(child.output(), text, sizeof text - 1), 0);
    grandchild = std::atoi(text);
  }
  EXPECT_FALSE(exists(pid));
  EXPECT_TRUE(dies(grandchild));
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(ChildProcess, ExitCodesAreKnownThoughTheirSignalWasIgnored) {
  auto* const before = ::signal(SIGCHLD, SIG_IGN);
  ChildProcess child(shell("exit 3"));
  EXPECT_EQ(child.wait(Deadline::after(60))->code, 3);
  ::signal(SIGCHLD, before);
}

TEST(ChildProcess, EndsThoughAnotherReapedIt) {
  ChildProcess child(shell("exit 3"));
  ASSERT_EQ(::waitpid(child.pid(), nullptr, 0), child.pid());
  const auto status = child.wait(Deadline::after(10));
  ASSERT_TRUE(status);
  EXPECT_FALSE(status->ok());
  EXPECT_EQ(child.kill().description(), "an exit code that is not known");
}

TEST(ChildProcess, MovesLikeAValue) {
  ChildProcess first(shell("exit 1"));
  ChildProcess second = std::move(first);
  EXPECT_EQ(second.wait(Deadline::after(60))->code, 1);
  second = ChildProcess(shell("exit 2"));
  EXPECT_EQ(second.wait(Deadline::after(60))->code, 2);
}

TEST(ChildProcess, PassesDescriptors) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  ChildOptions options = shell("echo through >&7");
  options.descriptors = {{write_end.get(), 7}};
  ChildProcess child(options);
  write_end.reset();
  EXPECT_TRUE(child.wait(Deadline::after(60))->ok());
  char text[16] = {};
  EXPECT_EQ(::read(read_end.get(), text, sizeof text), 8);
  EXPECT_STREQ(text, "through\n");
}

// The thread that started a child may end; the child stays.
TEST(ChildProcess, OutlivesTheThreadThatStartedIt) {
  std::optional<ChildProcess> child;
  std::thread([&] { child.emplace(shell("read line; exit 4")); }).join();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(child->poll(), std::nullopt);
  ASSERT_EQ(::write(child->input(), "x\n", 2), 2);
  EXPECT_EQ(child->wait(Deadline::after(60))->code, 4);
}

// A process that was forked without exec, as Python's multiprocessing does, can start children of its own.
TEST(ChildProcess, StartsInAForkedProcess) {
  if (base::kThreadSanitizer) GTEST_SKIP() << "a forked process may start no threads";
  EXPECT_TRUE(ChildProcess(shell("true")).wait(Deadline::after(60))->ok());
  const pid_t forked = ::fork();
  if (forked == 0) {
    ::alarm(60);
    ChildProcess child(shell("exit 6"));
    ::_exit(child.wait(Deadline::never())->code);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(forked, &status, 0), forked);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 6) << status;
}

// A process that is killed takes its children with it: here a copy of this test is the parent.
TEST(ChildProcessDeathTest, DiesWithItsParent) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string file = ::testing::TempDir() + "host_dies_with_parent";
  const auto parent = [&] {
    ChildOptions options = shell("echo $$ > " + file + "; echo ready; exec sleep 1000");
    ChildProcess child(options);
    char ready;
    if (::read(child.output(), &ready, 1) == 1) ::kill(::getpid(), SIGKILL);
  };
  EXPECT_EXIT(parent(), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_TRUE(dies(std::atoi(read_file(file).c_str())));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace collimate::host
