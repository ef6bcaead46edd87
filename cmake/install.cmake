# `cmake --install build/release --prefix DIR` puts this below DIR, by component:
#   program      bin/collimate, lib/collimate/collimate_{arrow,llguidance}.so, lib/collimate/python/, completions, man
#                page
#   libraries    lib/collimate/*.so*: what those load and Debian 12 has not in its base system
#   wheels       the same of PyPI's wheels (libtorch, the two of CUDA that it names, Arrow)
#   development  headers, lib/collimate/libcollimate.a and find_package(Collimate) for programs with parts of their own;
#                needs the target collimate_library
# and the licences of what is there in share/doc/collimate. A Python wheel takes the first two, and the component package
# of programs.cmake, and finds the third in its neighbours: package_rpath.cmake.
set(torch_include "${TORCH_ROOT}/include")
install(TARGETS collimate RUNTIME_DEPENDENCY_SET collimate_dependencies RUNTIME DESTINATION bin COMPONENT program)
foreach(loaded collimate_arrow collimate_llguidance)
  if(TARGET ${loaded})
    install(TARGETS ${loaded} RUNTIME_DEPENDENCY_SET collimate_dependencies
      LIBRARY DESTINATION lib/collimate COMPONENT program)
  endif()
endforeach()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/" DESTINATION lib/collimate/python COMPONENT program
  FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION share/doc/collimate COMPONENT program)
install(CODE "set(collimate_program \"$<TARGET_FILE:collimate>\")" COMPONENT program)
install(CODE "set(collimate_build \"${PROJECT_BINARY_DIR}\")" COMPONENT program)
install(SCRIPT "${PROJECT_SOURCE_DIR}/cmake/install_texts.cmake" COMPONENT program)

# The base system has the C library, libstdc++ and libgcc.
set(of_the_system PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|util|pthread|stdc\\+\\+|gcc_s)\\.so")
install(RUNTIME_DEPENDENCY_SET collimate_dependencies ${of_the_system} POST_EXCLUDE_REGEXES "/site-packages/"
  LIBRARY DESTINATION lib/collimate COMPONENT libraries)
install(RUNTIME_DEPENDENCY_SET collimate_dependencies ${of_the_system} POST_INCLUDE_REGEXES "/site-packages/"
  POST_EXCLUDE_REGEXES "." LIBRARY DESTINATION lib/collimate COMPONENT wheels)
foreach(component libraries wheels)
  install(CODE "set(collimate_python \"${Python3_EXECUTABLE}\")" COMPONENT ${component})
  install(SCRIPT "${PROJECT_SOURCE_DIR}/cmake/install_licenses.cmake" COMPONENT ${component})
endforeach()

# fmt and nlohmann/json are brought along, as a program's objects must agree with the library's.
install(TARGETS collimate_library ARCHIVE DESTINATION lib/collimate COMPONENT development OPTIONAL)
install(CODE "set(collimate_source \"${PROJECT_SOURCE_DIR}\")" COMPONENT development)
install(SCRIPT "${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake" COMPONENT development)
install(DIRECTORY "${torch_include}/ATen" "${torch_include}/c10" "${FMT_INCLUDE}/fmt" DESTINATION include/collimate-needs
  COMPONENT development FILES_MATCHING PATTERN "*.h")
install(DIRECTORY "${torch_include}/torch/headeronly" DESTINATION include/collimate-needs/torch COMPONENT development)
find_path(json_include nlohmann/json.hpp REQUIRED)
install(DIRECTORY "${json_include}/nlohmann" DESTINATION include/collimate-needs COMPONENT development)

include(CMakePackageConfigHelpers)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/CollimateConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_SOURCE_DIR}/cmake/CollimateConfig.cmake" "${PROJECT_BINARY_DIR}/CollimateConfigVersion.cmake"
  DESTINATION lib/cmake/Collimate COMPONENT development)
