# The GPU library: collimate/cuda/*.cu as `collimate_cuda`, its *_test.cu as `cuda_test`. Only the preset `cuda` includes
# this file; the CPU build needs no toolkit.
find_program(NVCC nvcc PATHS /usr/local/cuda/bin REQUIRED)
set(CMAKE_CUDA_COMPILER "${NVCC}" CACHE FILEPATH "")
set(CMAKE_CUDA_ARCHITECTURES 80 90 CACHE STRING "")
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

file(GLOB cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/collimate/cuda/*.cu")
set(cuda_tests ${cuda_sources})
list(FILTER cuda_tests INCLUDE REGEX "_test\\.cu$")
list(FILTER cuda_sources EXCLUDE REGEX "_test\\.cu$")
add_library(collimate_cuda STATIC ${cuda_sources})
target_include_directories(collimate_cuda PUBLIC "${PROJECT_SOURCE_DIR}")
# No contraction beyond what a kernel writes, as on the CPU.
target_compile_options(collimate_cuda PRIVATE --fmad=false -Werror=all-warnings)
set_target_properties(collimate_cuda PROPERTIES CUDA_STANDARD 17 CXX_EXTENSIONS OFF)
target_link_libraries(collimate_cuda PUBLIC CUDA::cudart)
if(cuda_tests AND COLLIMATE_TESTS)
  add_executable(cuda_test ${cuda_tests})
  set_target_properties(cuda_test PROPERTIES CUDA_STANDARD 17)
  target_link_libraries(cuda_test PRIVATE collimate_cuda GTest::gtest_main)
endif()
