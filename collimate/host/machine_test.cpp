#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "collimate/host/cpu.h"
#include "collimate/host/memory.h"
#include "tests/support/base/error_of.h"

namespace collimate::host {
namespace {

std::string cpuinfo_line(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name, 0) == 0) return line.substr(line.find(':') + 1) + " ";
  }
  return "";
}

// The kernel reads the same registers by itself.
TEST(Cpu, AgreesWithTheKernel) {
  const std::string flags = cpuinfo_line("flags");
  if (flags.empty()) GTEST_SKIP() << "no flags in /proc/cpuinfo";
  const auto has = [&](const std::string& flag) { return flags.find(" " + flag + " ") != std::string::npos; };
  const CpuFeatures& features = cpu_features();
  EXPECT_EQ(features.avx2, has("avx2") && has("fma") && has("f16c"));
  EXPECT_EQ(features.avx512, has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl"));
  EXPECT_EQ(features.avx512_bf16, has("avx512_bf16"));
  EXPECT_EQ(features.amx_bf16, has("amx_tile") && has("amx_bf16"));
  EXPECT_NE(cpuinfo_line("model name").find(cpu_model()), std::string::npos);
  EXPECT_GE(core_count(), 1);
}

// Sets OMP_NUM_THREADS while it lives.
class OpenMpThreads {
 public:
  explicit OpenMpThreads(const char* value) {
    if (const char* old = std::getenv(kName)) old_ = old;
    ::setenv(kName, value, 1);
  }
  ~OpenMpThreads() { old_ ? ::setenv(kName, old_->c_str(), 1) : ::unsetenv(kName); }

 private:
  static constexpr const char* kName = "OMP_NUM_THREADS";
  std::optional<std::string> old_;
};

TEST(Cpu, ThreadsAreThoseOfOpenMpOrAllCores) {
  for (const auto& [text, count] : {std::pair("", core_count()), {"7", 7}, {"3,2", 3}, {"1024", 1024}}) {
    const OpenMpThreads set(text);
    EXPECT_EQ(thread_count(), count) << text;
  }
  for (const char* wrong : {"0", "-1", "two", "2x", " 2", ",2", "1025", "99999999999"}) {
    const OpenMpThreads set(wrong);
    EXPECT_EQ(base::message_of<base::InputError>([] { thread_count(); }),
              std::string("[OMP_NUM_THREADS] expected a number of threads from 1 to 1024, got ") + wrong +
                  "; try unsetting it, which takes all cores");
  }
}

TEST(Memory, PeakFollowsTouchedPages) {
  constexpr size_t kBytes = 64 << 20;
  EXPECT_GT(resident_bytes(), 0);
  EXPECT_GE(peak_resident_bytes(), resident_bytes() / 2);
  const int64_t before = resident_bytes();
  {
    const std::unique_ptr<char[]> block(new char[kBytes]);
    std::memset(block.get(), 1, kBytes);
    EXPECT_EQ(block[kBytes / 2], 1);
    EXPECT_GT(resident_bytes(), before + static_cast<int64_t>(kBytes) / 2);
  }
  EXPECT_GT(peak_resident_bytes(), before + static_cast<int64_t>(kBytes) / 2);
}

}  // namespace
}  // namespace collimate::host
