#include "host_probe.hpp"

#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

namespace lockstep::monitor {

namespace {

constexpr double ask_every_s = 1;
constexpr double give_up_after_s = 4;

bool is_answer(int code) {
    return code == 0 || code == ECONNREFUSED;
}

} // namespace

void HostProbe::ask(sockaddr_in6 const& address, double now) {
    asked_ = now;
    call_ = Descriptor(::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int const result =
        ::connect(call_.get(), reinterpret_cast<sockaddr const*>(&address), sizeof(address));
    int const code = result == 0 ? 0 : errno;
    answered_at_once_ = is_answer(code);
    if (code != EINPROGRESS) {
        call_ = Descriptor();
    }
}

bool HostProbe::answered(sockaddr_in6 const& address, double now) {
    bool answer = std::exchange(answered_at_once_, false);
    pollfd state{call_.get(), POLLOUT, 0};
    if (call_.is_open() && ::poll(&state, 1, 0) > 0) {
        int code = 0;
        socklen_t length = sizeof(code);
        answer =
            ::getsockopt(call_.get(), SOL_SOCKET, SO_ERROR, &code, &length) == 0 && is_answer(code);
        call_ = Descriptor(); // its error is told once: asked again it would tell of none
    }
    double const since_s = now - asked_;
    if (asked_ < 0 || since_s > (call_.is_open() ? give_up_after_s : ask_every_s)) {
        ask(address, now);
    }
    return answer;
}

} // namespace lockstep::monitor
