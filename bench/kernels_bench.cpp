// Speed of the kernels against a register FMA loop: kernels_bench [threads] [what...], what = linear backward bf16 few.
// Each line: shape, best of several runs, GFLOP/s, share of the peak measured in this run. Weight-bound lines add GB/s.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "collimate/tensor/kernels/isa.h"
#include "collimate/tensor/kernels/peak.h"
#include "collimate/tensor/ops/attention.h"
#include "collimate/tensor/ops/linear.h"

namespace {

using collimate::tensor::Exec;
using collimate::tensor::LinearPanels;
using collimate::tensor::PanelType;

double seconds_of(const std::function<void()>& body) {
  using Clock = std::chrono::steady_clock;
  double best = 1e30;
  const auto begin = Clock::now();
  for (int i = 0; i < 3 || (i < 200 && std::chrono::duration<double>(Clock::now() - begin).count() < 0.15); ++i) {
    const auto t = Clock::now();
    body();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - t).count());
  }
  return best;
}

std::vector<float> noise(int64_t count) {
  std::vector<float> x(static_cast<size_t>(count));
  uint32_t state = 12345;
  for (float& v : x) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
  }
  return x;
}

struct Bench {
  Exec exec;
  double peak = 0;  // GFLOP/s of all threads

  void line(const std::string& name, double flops, double seconds, double bytes = 0) const {
    const double rate = flops / seconds / 1e9;
    fmt::print("{:42} {:10.1f} us {:8.1f} GFLOP/s {:5.1f} %{}\n", name, seconds * 1e6, rate, 100 * rate / peak,
               bytes > 0 ? fmt::format(" {:6.1f} GB/s", bytes / seconds / 1e9) : "");
  }

  void linear(int64_t m, int64_t n, int64_t k, PanelType type) const {
    const auto w = noise(n * k);
    const auto x = noise(m * k);
    std::vector<float> y(static_cast<size_t>(m * n));
    LinearPanels panels;
    pack_linear(exec, w.data(), n, k, type, 1, panels);
    const double s = seconds_of([&] { collimate::tensor::linear(exec, x.data(), k, m, panels, y.data(), n); });
    line(fmt::format("linear {} M={} N={} K={}", type == PanelType::kFp32 ? "fp32" : "bf16", m, n, k), 2.0 * m * n * k,
         s, static_cast<double>(panels.bytes()));
  }

  void backward(int64_t m, int64_t n, int64_t k) const {
    const auto w = noise(n * k);
    const auto x = noise(m * k);
    const auto dy = noise(m * n);
    std::vector<float> dx(static_cast<size_t>(m * k));
    std::vector<float> dw(static_cast<size_t>(n * k));
    const double flops = 2.0 * m * n * k;
    line(fmt::format("grad_input M={} N={} K={}", m, n, k), flops, seconds_of([&] {
           collimate::tensor::linear_grad_input(exec, dy.data(), n, m, w.data(), n, k, dx.data(), k);
         }));
    line(fmt::format("grad_weight M={} N={} K={}", m, n, k), flops, seconds_of([&] {
           collimate::tensor::linear_grad_weight(exec, dy.data(), n, x.data(), k, m, n, k, dw.data());
         }));
  }

  void attention(int64_t sequences, int64_t tokens, int heads, int kv_heads, int head_dim) const;
};

void Bench::attention(int64_t sequences, int64_t tokens, int heads, int kv_heads, int head_dim) const {
  using namespace collimate::tensor;
  const int64_t rows = sequences * tokens;
  const int64_t width = int64_t{heads} * head_dim;
  const int64_t kv_width = int64_t{kv_heads} * head_dim;
  const KvLayout layout{kv_heads, head_dim};
  const int64_t blocks = KvLayout::blocks_for(tokens);
  const auto q = noise(rows * width);
  const auto k = noise(rows * kv_width);
  const auto v = noise(rows * kv_width);
  std::vector<float> storage(static_cast<size_t>(sequences * blocks * layout.block_floats()));
  std::vector<float> out(q.size()), lse(static_cast<size_t>(rows * heads)), dq(q.size()), dk(k.size()), dv(v.size());
  std::vector<int32_t> ids(static_cast<size_t>(sequences * blocks));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::vector<AttentionRun> runs;
  std::vector<Document> documents;
  for (int64_t s = 0; s < sequences; ++s) {
    runs.push_back({s * tokens, tokens, 0, ids.data() + s * blocks});
    documents.push_back({s * tokens, tokens});
  }
  append_kv(exec, layout, k.data(), kv_width, v.data(), kv_width, runs, storage.data());
  const AttentionForward f{layout, heads, 0.125F, q.data(), width, storage.data(), out.data(), width, lse.data()};
  const double flops = 2.0 * 2.0 * sequences * heads * head_dim * (tokens * (tokens + 1) / 2.0);
  const std::string shape = fmt::format("S={} T={} H={}/{} D={}", sequences, tokens, heads, kv_heads, head_dim);
  line("attention " + shape, flops, seconds_of([&] { attention_forward(exec, f, runs); }));
  for (AttentionRun& run : runs) run = {run.first_row / tokens, 1, tokens - 1, run.blocks};
  line("attention decode " + shape, 4.0 * sequences * heads * head_dim * tokens,
       seconds_of([&] { attention_forward(exec, f, runs); }), static_cast<double>(storage.size()) * 4);
  AttentionBackward b;
  b.heads = heads, b.kv_heads = kv_heads, b.head_dim = head_dim, b.scale = 0.125F;
  b.q = q.data(), b.q_stride = width, b.k = k.data(), b.v = v.data(), b.kv_stride = kv_width;
  b.out = out.data(), b.dout = q.data(), b.out_stride = width, b.lse = lse.data();
  b.dq = dq.data(), b.dq_stride = width, b.dk = dk.data(), b.dv = dv.data(), b.dkv_stride = kv_width;
  line("attention backward " + shape, 2.5 * flops, seconds_of([&] { attention_backward(exec, b, documents); }));
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const auto wants = [&](const std::string& what) {
    for (int i = 2; i < argc; ++i) {
      if (what == argv[i]) return true;
    }
    return argc <= 2;
  };
  collimate::host::CorePool pool(threads);
  Bench bench{{&pool}};
  bench.peak = collimate::tensor::fma_peak(bench.exec);
  fmt::print("isa {} threads {} register FMA peak {:.1f} GFLOP/s\n", name_of(collimate::tensor::instruction_set()),
             threads, bench.peak);
  for (const int64_t m : {1, 4, 8, 16}) {
    if (!wants("few")) break;
    for (const int64_t k : {64, 288, 1024}) bench.linear(m, k, k, PanelType::kFp32);
    bench.linear(m, 32000, 288, PanelType::kFp32);
    bench.linear(m, 1024, 1024, PanelType::kBf16);
  }
  for (const int64_t m : {64, 256, 2048}) {
    if (wants("linear")) {
      for (const int64_t k : {64, 288, 768, 1024}) bench.linear(m, k, k, PanelType::kFp32);
    }
    if (wants("bf16")) {
      for (const int64_t k : {288, 1024}) bench.linear(m, k, k, PanelType::kBf16);
    }
    if (wants("backward")) {
      for (const int64_t k : {64, 288, 768, 1024}) bench.backward(m, k, k);
    }
  }
  if (wants("attention")) {
    bench.attention(8, 128, 12, 4, 64);
    bench.attention(8, 192, 6, 6, 48);
    bench.attention(32, 64, 8, 4, 16);
    bench.attention(1, 1024, 12, 12, 64);
  }
  return 0;
}
