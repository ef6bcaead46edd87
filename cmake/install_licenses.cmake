# Run at installation, with the interpreter `collimate_python` set, after the libraries are there.
cmake_minimum_required(VERSION 3.25)
get_filename_component(tools "${CMAKE_CURRENT_LIST_DIR}/../tools" ABSOLUTE)
execute_process(COMMAND "${collimate_python}" "${tools}/licenses.py" "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}"
  COMMAND_ERROR_IS_FATAL ANY)
