#pragma once

// Declares the kernels of an operation, one table per instruction set, and the function that returns the table of
// instruction_set().
#define COLLIMATE_KERNEL_TABLE(Kernels, table, chosen) \
  namespace avx2 {                                     \
  extern const Kernels table;                          \
  }                                                    \
  namespace avx512 {                                   \
  extern const Kernels table;                          \
  }                                                    \
  const Kernels& chosen()
