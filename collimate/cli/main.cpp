#include "collimate/cli/program.h"

int main(int argc, char** argv) { return collimate::cli::run_program(argc, argv); }
