# find_package(Collimate): the target Collimate::collimate is all of `collimate` but a main() (collimate/collimate.h);
# Collimate::plugin is what a plugin is compiled with, whose functions are those of the program that loads it.
# Nothing else has to be found: libraries and headers that it needs lie beside it in the installation.
get_filename_component(_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(_libraries "${_prefix}/lib/collimate")
set(_needed "")
foreach(_name torch_cpu c10 fmt yaml-cpp pcre2-8 utf8proc edit cpp-httplib)
  file(GLOB _found "${_libraries}/lib${_name}.so*")
  if(NOT _found)
    set(Collimate_FOUND FALSE)
    set(Collimate_NOT_FOUND_MESSAGE
      "[Collimate] expected lib${_name}.so in ${_libraries}, got none; try `make install PREFIX=${_prefix}` again")
    return()
  endif()
  list(GET _found 0 _found)
  list(APPEND _needed "${_found}")
endforeach()

find_package(Threads REQUIRED)
if(NOT TARGET Collimate::collimate)
  add_library(Collimate::collimate STATIC IMPORTED)
  # All symbols are shown to plugins. Older dynamic tags: the directory then serves the libraries of those libraries too. No contraction, as in the library
  # itself: a fused multiply-add happens only where code writes one.
  add_library(Collimate::plugin INTERFACE IMPORTED)
  set_target_properties(Collimate::plugin PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_prefix}/include;${_prefix}/include/collimate-needs"
    INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_COMPILE_OPTIONS "-ffp-contract=off;-fno-math-errno"
    INTERFACE_COMPILE_DEFINITIONS "_GLIBCXX_USE_CXX11_ABI=1;FMT_SHARED;COLLIMATE_VERSION=\"${Collimate_VERSION}\"")
  set_target_properties(Collimate::collimate PROPERTIES
    IMPORTED_LOCATION "${_libraries}/libcollimate.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_prefix}/include;${_prefix}/include/collimate-needs"
    INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_COMPILE_OPTIONS "-ffp-contract=off;-fno-math-errno"
    INTERFACE_COMPILE_DEFINITIONS "_GLIBCXX_USE_CXX11_ABI=1;FMT_SHARED;COLLIMATE_VERSION=\"${Collimate_VERSION}\""
    INTERFACE_LINK_OPTIONS "LINKER:--export-dynamic;LINKER:--disable-new-dtags;LINKER:-rpath,${_libraries};LINKER:-rpath-link,${_libraries}"
    INTERFACE_LINK_LIBRARIES "${_needed};Threads::Threads;${CMAKE_DL_LIBS}")
endif()
set(Collimate_FOUND TRUE)
