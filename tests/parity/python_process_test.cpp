#include "collimate/recipe/python_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "collimate/base/error.h"
#include "collimate/host/checksum.h"
#include "collimate/host/mapped_file.h"
#include "collimate/recipe/plugins.h"
#include "tests/support/base/error_of.h"
#include "tests/support/small_task.h"

namespace collimate::test {
namespace {

using recipe::PythonProcess;
using testing::HasSubstr;

constexpr const char* kPlugin = R"(import os
import pathlib
import collimate

@collimate.flow
def endless(page, prompts):
    pathlib.Path(__file__).with_name("pid").write_text(str(os.getpid()))
    while True:
        pass

@collimate.flow
def idle(page, prompts):
    pass
)";

uint32_t crc_of_file(const std::string& path) { return host::crc32c(host::MappedFile(path).bytes()); }

class PythonProcesses : public testing::Test {
 protected:
  PythonProcesses() : scratch_("python-process"), path_(scratch_ / "mine.py") {
    write_text(path_, kPlugin);
    crc_ = crc_of_file(path_);
  }
  const Scratch scratch_;
  const std::string path_;
  uint32_t crc_ = 0;
};

void trace(PythonProcess& process, const std::string& flow, double seconds) {
  process.ask({{"flow", flow}, {"config", nlohmann::json::object()}}, {}, seconds);
}

std::string failure_of_trace(PythonProcess& process, const std::string& flow, double seconds) {
  return base::message_of<base::RunError>([&] { trace(process, flow, seconds); });
}

TEST_F(PythonProcesses, OneThatDoesNotAnswerIsKilledAndMayBeRevived) {
  PythonProcess process(path_, crc_);
  EXPECT_EQ(process.told().at("flows").size(), 2U);
  EXPECT_THAT(failure_of_trace(process, "endless", 2), HasSubstr("an answer of its Python, got none within 2 s"));
  EXPECT_NE(::kill(std::stoi(read_text(scratch_ / "pid")), 0), 0) << "it still runs";
  EXPECT_THAT(failure_of_trace(process, "idle", 60), HasSubstr("its Python process, got none, as it was killed"));
  process.revive();
  EXPECT_THAT(base::message_of([&] { trace(process, "idle", 60); }),
              HasSubstr("[flow idle] expected a call that trains, got none"));
}

TEST_F(PythonProcesses, NoneImportsAnotherContentThanTheRunBeganWith) {
  PythonProcess process(path_, crc_);
  failure_of_trace(process, "endless", 1);
  const std::string pinned = recipe::pinned_plugin(path_);
  write_text(path_, std::string(kPlugin) + "# changed\n");
  EXPECT_THAT(base::message_of<base::RunError>([&] { process.revive(); }),
              HasSubstr("the file as it was loaded, got another content"));
  EXPECT_THAT(base::message_of<base::RunError>([&] { PythonProcess(path_, crc_); }),
              HasSubstr("got another content since"));
  EXPECT_THAT(base::message_of([&] { recipe::add_pinned_plugin(pinned); }),
              HasSubstr("the file with which the run has begun, CRC32C " + pinned.substr(0, 8)));
  EXPECT_THAT(base::message_of([&] { recipe::add_pinned_plugin("mine"); }), HasSubstr("expected CRC32C:FILE"));
}

}  // namespace
}  // namespace collimate::test
