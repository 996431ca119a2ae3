#include "base/process_calls.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "intercepted.hpp"

namespace lockstep::app {

void link_last_exit() noexcept {}

} // namespace lockstep::app

/// In place of the C library's, whose task it does, too.
extern "C" [[noreturn]] void _exit(int status) { // NOLINT(bugprone-reserved-identifier)
    if (auto* const call = lockstep::before_exit().load()) {
        status = call(status);
    }
    while (true) {
        ::syscall(SYS_exit_group, status);
    }
}
