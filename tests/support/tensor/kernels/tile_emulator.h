#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace collimate::tensor::emulated {

// The tile registers of AMX and the instructions on them, with the faults that a processor raises; from Intel's
// Architecture Instruction Set Extensions Programming Reference, chapter "Intel Advanced Matrix Extensions".
// Each method that may fault does nothing then and keeps the first fault's text.
class TileEmulator {
 public:
  // ldtilecfg: `config` has 64 bytes.
  void configure(const void* config);
  void release();
  void zero(int tile);
  // Rows lie `stride` bytes apart.
  void load(int tile, const void* from, int64_t stride);
  void store(int tile, void* to, int64_t stride);
  // tdpbf16ps: sums [rows, columns] fp32 += left [rows, pairs][2] right [pairs, columns][2], bf16.
  void multiply_bf16(int sums, int left, int right);

  const std::string& fault() const { return fault_; }
  int64_t instructions() const { return instructions_; }

 private:
  static constexpr int kTiles = 8, kMostRows = 16, kMostBytes = 64;
  struct Tile {
    int rows = 0, row_bytes = 0;
    std::array<std::array<uint8_t, kMostBytes>, kMostRows> row = {};

    template <typename T>
    T at(int r, int i) const {
      T value;
      std::memcpy(&value, row[static_cast<size_t>(r)].data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
      return value;
    }
  };

  Tile& tile(int index) { return tiles_[static_cast<size_t>(index)]; }
  bool holds(bool condition, const char* otherwise);  // counts nothing; keeps the fault
  bool usable(int index, const char* instruction);

  std::array<Tile, kTiles> tiles_ = {};
  std::string fault_;
  int64_t instructions_ = 0;
};

// While it lives, instructions on tiles that this processor refuses are executed by an emulator. A processor that has
// them, in a process that may use them, executes them itself.
class EmulatedTiles {
 public:
  EmulatedTiles();
  ~EmulatedTiles();
  EmulatedTiles(const EmulatedTiles&) = delete;
  EmulatedTiles& operator=(const EmulatedTiles&) = delete;

  const TileEmulator& emulator() const;
};

}  // namespace collimate::tensor::emulated
