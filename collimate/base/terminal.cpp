#include "collimate/base/terminal.h"

#include <sys/ioctl.h>

namespace collimate::base {

int terminal_columns(int descriptor, int otherwise) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

}  // namespace collimate::base
