# What `cmake --install build/release --prefix DIR` puts below DIR, by component:
#   program    bin/collimate, lib/collimate/collimate_parquet.so, lib/collimate/python/
#   libraries  lib/collimate/*.so: what those load and Debian 12 has not in its base system
#   wheels     the same of PyPI's wheels (libtorch, the two of CUDA that it names, Arrow)
# A wheel of Collimate takes the first two and finds the third in its neighbours: COLLIMATE_EXTRA_RPATH.
set(COLLIMATE_LICENSES_DIR share/doc/collimate)
install(TARGETS collimate RUNTIME_DEPENDENCY_SET collimate_dependencies RUNTIME DESTINATION bin COMPONENT program)
if(TARGET collimate_parquet)
  install(TARGETS collimate_parquet RUNTIME_DEPENDENCY_SET collimate_dependencies
    LIBRARY DESTINATION lib/collimate COMPONENT program)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/" DESTINATION lib/collimate/python COMPONENT program
  FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION ${COLLIMATE_LICENSES_DIR} COMPONENT program)

# The base system has the C library, libstdc++ and libgcc.
set(_of_the_system PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|util|pthread|stdc\\+\\+|gcc_s)\\.so")
install(RUNTIME_DEPENDENCY_SET collimate_dependencies ${_of_the_system} POST_EXCLUDE_REGEXES "/site-packages/"
  LIBRARY DESTINATION lib/collimate COMPONENT libraries)
install(RUNTIME_DEPENDENCY_SET collimate_dependencies ${_of_the_system} POST_INCLUDE_REGEXES "/site-packages/"
  POST_EXCLUDE_REGEXES "." LIBRARY DESTINATION lib/collimate COMPONENT wheels)
