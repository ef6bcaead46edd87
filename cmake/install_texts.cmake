# Run at installation, with the paths `collimate_program` and `collimate_build` set: what the program prints about its own
# options, at the places where shells and man look.
cmake_minimum_required(VERSION 3.25)
foreach(text IN ITEMS
    "bash share/bash-completion/completions collimate"
    "zsh share/zsh/site-functions _collimate"
    "fish share/fish/vendor_completions.d collimate.fish"
    "man share/man/man1 collimate.1")
  string(REPLACE " " ";" text "${text}")
  list(GET text 0 kind)
  list(GET text 1 folder)
  list(GET text 2 name)
  file(MAKE_DIRECTORY "${collimate_build}/texts")
  execute_process(COMMAND "${collimate_program}" completion ${kind} OUTPUT_FILE "${collimate_build}/texts/${name}"
    COMMAND_ERROR_IS_FATAL ANY)
  file(INSTALL "${collimate_build}/texts/${name}" DESTINATION "${CMAKE_INSTALL_PREFIX}/${folder}")
endforeach()
