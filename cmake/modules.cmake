# The folders of collimate/ in the order data flows. INCLUDES is the whole list of what a folder may include.
collimate_module(base INCLUDES LIBRARIES yaml-cpp CHOSEN no_fault.cpp)
# Every program links this beside its modules: the hooks for tests, or functions in their place that do nothing.
function(collimate_chosen_source target source)
  add_library(${target}_object OBJECT "${PROJECT_SOURCE_DIR}/${source}")
  target_link_libraries(${target}_object PRIVATE collimate_options)
  add_library(${target} INTERFACE)
  target_sources(${target} INTERFACE $<TARGET_OBJECTS:${target}_object>)
endfunction()
collimate_chosen_source(collimate_no_test_hooks collimate/base/no_fault.cpp)
if(COLLIMATE_TESTS)
  collimate_chosen_source(collimate_test_hooks tests/support/fault.cpp)
  add_library(collimate_test_main STATIC "${PROJECT_SOURCE_DIR}/tests/support/test_main.cpp")
  target_link_libraries(collimate_test_main PUBLIC collimate_options GTest::gtest GTest::gmock
    INTERFACE collimate_test_hooks)
  # Sources of tests, a third of what is compiled, take a third less time so; what they test is optimised as ever.
  target_compile_options(collimate_test_main INTERFACE $<$<CONFIG:Release>:-O1>)
endif()
collimate_module(host INCLUDES base)
collimate_module(shape INCLUDES base)
collimate_module(tensor TORCH INCLUDES base host shape)
set_source_files_properties("${PROJECT_SOURCE_DIR}/collimate/tensor/default_device.cpp" PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON)
if(COLLIMATE_TESTS)
  # In every test program that computes: a device whose memory the host cannot touch (tests/support/checked_device.h),
  # whose object defines default_device(), so that the library's is left out; and one thread for ATen.
  add_library(collimate_checked_device_object OBJECT "${PROJECT_SOURCE_DIR}/tests/support/checked_device.cpp"
    "${PROJECT_SOURCE_DIR}/tests/support/one_aten_thread.cpp")
  target_link_libraries(collimate_checked_device_object PRIVATE collimate_tensor)
  # RecordFunction of ATen has a member less in libtorch, which is built so.
  target_compile_definitions(collimate_checked_device_object PRIVATE NDEBUG)
  add_library(collimate_checked_device INTERFACE)
  target_sources(collimate_checked_device INTERFACE $<TARGET_OBJECTS:collimate_checked_device_object>)
endif()
collimate_module(cuda INCLUDES base)  # sources are *.cu: see cuda.cmake
collimate_module(comm TORCH INCLUDES base host tensor)
collimate_module(batch TORCH INCLUDES base tensor)
collimate_module(text INCLUDES base host LIBRARIES PkgConfig::PCRE2 PkgConfig::UTF8PROC)
collimate_module(model TORCH INCLUDES base host shape tensor comm)
collimate_module(generate TORCH INCLUDES base shape tensor comm batch text model)
collimate_module(train TORCH INCLUDES base host shape tensor comm batch model)
collimate_module(graph INCLUDES base shape)
collimate_module(cluster INCLUDES base host)
collimate_module(flow TORCH INCLUDES base host shape tensor comm batch graph cluster)
collimate_module(rlhf TORCH INCLUDES base host tensor comm batch text model generate train graph cluster flow
  LIBRARIES PkgConfig::HTTPLIB)
collimate_module(plan INCLUDES base graph shape)
collimate_module(serve TORCH INCLUDES base host batch text generate LIBRARIES PkgConfig::HTTPLIB)
collimate_module(report INCLUDES base)
collimate_module(recipe TORCH INCLUDES base host shape tensor comm batch text model generate train graph cluster flow rlhf)
if(TARGET collimate_recipe)
  set_source_files_properties("${PROJECT_SOURCE_DIR}/collimate/recipe/summary.cpp"
    "${PROJECT_SOURCE_DIR}/collimate/recipe/plugins.cpp" PROPERTIES COMPILE_DEFINITIONS "COLLIMATE_VERSION=\"${PROJECT_VERSION}\"")
endif()
collimate_module(cli TORCH INCLUDES base host shape tensor comm batch text model generate train graph cluster flow rlhf plan serve report recipe LIBRARIES PkgConfig::LIBEDIT)
collimate_module(python TORCH INCLUDES base host tensor generate text model rlhf recipe report cli)
