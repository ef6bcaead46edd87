// A plugin that calls what no Collimate has.
extern "C" void function_of_no_library();
extern "C" const char* collimate_plugin_built_for() {
  function_of_no_library();
  return "";
}
