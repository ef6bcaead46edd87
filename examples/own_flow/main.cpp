// `collimate` with the parts of flow.cpp, for who would rather have a program than a plugin.
#include "collimate/collimate.h"

extern "C" void collimate_plugin_register();

int main(int argc, char** argv) {
  collimate_plugin_register();
  return collimate::run_program(argc, argv);
}
