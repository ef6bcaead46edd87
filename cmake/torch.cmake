# Imported targets for libtorch as the PyPI wheel ships it. No find_package(Torch): on a machine without CUDA the
# wheel's own package file stops with an error. `import torch` is never run.
#   torch::cpu   libtorch_cpu + libc10, never libtorch.so (which needs libtorch_cuda)
# Input: TORCH_ROOT, the directory with include/ and lib/; by default the package found by Python3_EXECUTABLE.
set(TORCH_ROOT "" CACHE PATH "directory of the torch package (holds include/ and lib/)")
if(NOT TORCH_ROOT)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c
    "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '', end='')"
    OUTPUT_VARIABLE _torch_found)
  if(_torch_found)
    set(TORCH_ROOT "${_torch_found}" CACHE PATH "" FORCE)
  endif()
endif()
find_library(TORCH_CPU_LIBRARY torch_cpu PATHS "${TORCH_ROOT}/lib" NO_DEFAULT_PATH)
find_library(TORCH_C10_LIBRARY c10 PATHS "${TORCH_ROOT}/lib" NO_DEFAULT_PATH)

# libtorch_cpu itself needs libcudart and libcupti: the two small wheels beside torch, else the toolkit.
get_filename_component(_torch_site "${TORCH_ROOT}" DIRECTORY)
file(GLOB _torch_cuda_dirs "${_torch_site}/nvidia/*/lib")
list(APPEND _torch_cuda_dirs /usr/local/cuda/lib64 /usr/local/cuda/extras/CUPTI/lib64)

if(NOT TORCH_CPU_LIBRARY OR NOT TORCH_C10_LIBRARY)
  message(FATAL_ERROR "[cmake/torch.cmake] expected libtorch_cpu and libc10 in TORCH_ROOT/lib, got none in "
    "\"${TORCH_ROOT}/lib\"; try `make test`, which installs them")
endif()
if(NOT TARGET torch::cpu)
  add_library(torch::c10 SHARED IMPORTED)
  set_target_properties(torch::c10 PROPERTIES IMPORTED_LOCATION "${TORCH_C10_LIBRARY}")
  add_library(torch::cpu SHARED IMPORTED)
  set_target_properties(torch::cpu PROPERTIES IMPORTED_LOCATION "${TORCH_CPU_LIBRARY}"
    INTERFACE_COMPILE_DEFINITIONS "_GLIBCXX_USE_CXX11_ABI=1"
    INTERFACE_LINK_LIBRARIES torch::c10)
  target_include_directories(torch::cpu SYSTEM INTERFACE
    "${TORCH_ROOT}/include" "${TORCH_ROOT}/include/torch/csrc/api/include")
  foreach(dir IN LISTS _torch_cuda_dirs)
    file(GLOB _torch_has "${dir}/libcudart.so.*" "${dir}/libcupti.so.*")
    if(_torch_has)
      target_link_options(torch::cpu INTERFACE "LINKER:-rpath-link,${dir}")
      list(APPEND CMAKE_BUILD_RPATH "${dir}")
    endif()
  endforeach()
endif()
