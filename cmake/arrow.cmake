# The Parquet reader: one module library on the libarrow and libparquet of the pyarrow package that Python3_EXECUTABLE
# finds. Without pyarrow there is no library, and opening a Parquet file is an error that says how to get it.
execute_process(COMMAND ${Python3_EXECUTABLE} -c
  "import importlib.util as u; s = u.find_spec('pyarrow'); print(s.submodule_search_locations[0] if s else '', end='')"
  OUTPUT_VARIABLE _pyarrow)
file(GLOB _arrow_library "${_pyarrow}/libarrow.so.*[0-9]")
file(GLOB _parquet_library "${_pyarrow}/libparquet.so.*[0-9]")
if(NOT _pyarrow OR NOT _arrow_library OR NOT _parquet_library OR NOT EXISTS "${_pyarrow}/include/arrow/api.h")
  message(STATUS "Parquet: no pyarrow for ${Python3_EXECUTABLE}; built without the reader")
  return()
endif()
list(GET _arrow_library 0 _arrow_library)
list(GET _parquet_library 0 _parquet_library)
message(STATUS "Parquet: ${_parquet_library}")

add_library(collimate_arrow MODULE "${PROJECT_SOURCE_DIR}/collimate/text/arrow/arrow_plugin.cc")
set_target_properties(collimate_arrow PROPERTIES PREFIX ""
  LIBRARY_OUTPUT_DIRECTORY "${COLLIMATE_LIBRARIES_DIR}" INSTALL_RPATH "$ORIGIN" CXX_VISIBILITY_PRESET hidden)
target_include_directories(collimate_arrow SYSTEM PRIVATE "${_pyarrow}/include")
target_link_libraries(collimate_arrow PRIVATE collimate_options "${_parquet_library}" "${_arrow_library}")
# Whoever builds the readers gets this one too; the target is defined later in the same directory.
cmake_language(DEFER CALL add_dependencies collimate_text collimate_arrow)
