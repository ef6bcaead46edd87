// A plugin of an earlier Collimate, whose objects have another layout.
extern "C" const char* collimate_plugin_built_for() { return "collimate 0.0.9 and the C++ ABI 1017.1"; }
extern "C" unsigned long long collimate_plugin_layout() { return 7; }
extern "C" void collimate_plugin_register() { __builtin_trap(); }
