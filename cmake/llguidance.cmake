# The engine of structured output: llguidance, whose Python package holds a library with an interface in C. That library
# names functions of CPython's too, which only its own Python module calls: a module library defines these names, so that
# a program without Python loads both, and no other library sees them. Without the package there is no library, and
# asking for structured output is an error that says how to get it.
execute_process(COMMAND ${Python3_EXECUTABLE} -c
  "import importlib.util as u; s = u.find_spec('llguidance'); print(s.submodule_search_locations[0] if s else '', end='')"
  OUTPUT_VARIABLE _llguidance)
file(GLOB _llguidance_library "${_llguidance}/_lib*.so")
if(NOT _llguidance OR NOT _llguidance_library)
  message(STATUS "Structured output: no llguidance for ${Python3_EXECUTABLE}; built without the engine")
  return()
endif()
message(STATUS "Structured output: ${_llguidance_library}")
execute_process(COMMAND ${CMAKE_NM} --dynamic --undefined-only --format=just-symbols "${_llguidance_library}"
  OUTPUT_VARIABLE _names COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "_?Py[A-Za-z0-9_]+" _names "${_names}")
list(JOIN _names "\n" _names)
string(REGEX REPLACE "([^\n]+)" "extern \"C\" void \\1() { __builtin_trap(); }" _definitions "${_names}\n")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/llguidance_python_names.cc" CONTENT "${_definitions}" @ONLY)
# A name that the loader looks for: the package's own is no library's, and the library itself names none.
configure_file("${_llguidance_library}" "${COLLIMATE_LIBRARIES_DIR}/libllguidance.so" COPYONLY)

add_library(collimate_llguidance MODULE "${PROJECT_BINARY_DIR}/llguidance_python_names.cc")
set_target_properties(collimate_llguidance PROPERTIES PREFIX "" UNITY_BUILD OFF
  LIBRARY_OUTPUT_DIRECTORY "${COLLIMATE_LIBRARIES_DIR}" BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
target_link_options(collimate_llguidance PRIVATE LINKER:--no-as-needed "-L${COLLIMATE_LIBRARIES_DIR}")
target_link_libraries(collimate_llguidance PRIVATE -l:libllguidance.so)
# Whoever builds the readers of text gets this one too; the target is defined later in the same directory.
cmake_language(DEFER CALL add_dependencies collimate_text collimate_llguidance)
