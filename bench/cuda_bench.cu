// Measures the speed of the CUDA operations against this GPU's memory:
//   bench_cuda [rounds]
// Each line has the shape, the median microseconds (least - largest) of a call, GB/s with each byte read and written
// once, and the share of the speed of a copy of as many bytes on the device, measured in turn with it in the same run.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <vector>

#include "collimate/cuda/rms_norm_cuda.h"

namespace {

constexpr int kCalls = 10;           // calls in a sample
constexpr int kSets = 4;             // sets of inputs, used in turn: together they exceed the second-level cache
constexpr size_t kFloats = 1 << 27;  // floats in one set's input: 512 MiB

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

__global__ void fill(float* x, size_t count, unsigned seed) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    const unsigned state = (static_cast<unsigned>(i) + seed) * 1664525U + 1013904223U;
    x[i] = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
  }
}

float* noise(size_t count, unsigned seed) {
  float* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(float)));
  fill<<<1024, 256>>>(memory, count, seed);
  check(cudaGetLastError());
  return memory;
}

// Returns the mean microseconds of a call, by events on the device. `body` gets the number of the set of inputs.
double sample(const std::function<void(int)>& body) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  check(cudaEventRecord(begin));
  for (int call = 0; call < kCalls; ++call) body(call % kSets);
  check(cudaEventRecord(end));
  check(cudaEventSynchronize(end));
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end));
  check(cudaEventDestroy(begin));
  check(cudaEventDestroy(end));
  return milliseconds * 1e3 / kCalls;
}

double median(std::vector<double>& samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

void compare(size_t rows, size_t width, int rounds) {
  float *x[kSets], *y[kSets], *weight = noise(width, 1), *inv = noise(rows, 2);
  for (int set = 0; set < kSets; ++set) x[set] = noise(rows * width, 3 + set), y[set] = noise(rows * width, 9);
  const auto copy = [&](int set) {
    check(cudaMemcpyAsync(y[set], x[set], rows * width * sizeof(float), cudaMemcpyDeviceToDevice, nullptr));
  };
  const auto norm = [&](int set) {
    check(collimate::cuda::rms_norm(x[set], weight, 1e-5F, static_cast<int64_t>(rows), static_cast<int64_t>(width),
                                    y[set], inv, nullptr));
  };
  sample(copy), sample(norm);  // warm up
  std::vector<double> of_copy, of_norm;
  for (int round = 0; round < rounds; ++round) of_copy.push_back(sample(copy)), of_norm.push_back(sample(norm));
  const double copied = median(of_copy), normed = median(of_norm);
  std::printf("rms_norm %7zu x %5zu  %8.1f (%.1f - %.1f) us  %6.0f GB/s  %5.1f %% of a copy (%.1f us, %.1f - %.1f)\n",
              rows, width, normed, of_norm.front(), of_norm.back(),
              2e-3 * sizeof(float) * double(rows * width) / normed, 100 * copied / normed, copied, of_copy.front(),
              of_copy.back());
  for (int set = 0; set < kSets; ++set) check(cudaFree(x[set])), check(cudaFree(y[set]));
  check(cudaFree(weight)), check(cudaFree(inv));
}

}  // namespace

int main(int argc, char** argv) try {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0));
  std::printf("%s, %d multiprocessors\n", device.name, device.multiProcessorCount);
  for (const size_t width : {896, 1024, 2048, 4096, 8192, 16384}) compare(kFloats / width, width, rounds);
} catch (const std::exception& error) {
  std::fprintf(stderr, "[bench_cuda] %s\n", error.what());
  return 1;
}
