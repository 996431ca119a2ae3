#include "listener.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace lockstep::serve {

namespace {

constexpr int waiting_connections = 64;

Error no_listener(std::string const& where, std::string why, std::string next) {
    return Error(ExitCode::cannot_create, {concat("cannot listen on ", where), why, next});
}

template <class Address>
bool bind_to(Descriptor const& socket, Address const& address) {
    return ::bind(socket.get(), reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0;
}

sockaddr_un unix_address(std::filesystem::path const& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    auto const text = path.string();
    if (text.size() >= sizeof address.sun_path) {
        throw Error(ExitCode::usage,
                    {concat("--socket ", text), "the path is longer than 107 bytes",
                     "Name a shorter path, for example under $XDG_RUNTIME_DIR or /tmp"});
    }
    std::memcpy(address.sun_path, text.c_str(), text.size());
    return address;
}

/// Removes a socket that an earlier server left; one that still answers stays.
void remove_left_over(std::filesystem::path const& path, sockaddr_un const& address) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) {
        return;
    }
    if (!S_ISSOCK(info.st_mode)) {
        throw no_listener(path.string(), "a file of that name exists", "Name another --socket");
    }
    // Who has stopped, with as many calls waiting as the kernel keeps, would hold a blocking call.
    Descriptor const probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(probe.get(), reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0 ||
        errno != ECONNREFUSED) {
        throw no_listener(path.string(), "another process listens there, or may be listening",
                          "End that process, or name another --socket");
    }
    ::unlink(path.c_str());
}

/// Whether the process at the other end of a Unix socket is of this user.
bool is_of_this_user(int connection) {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           peer.uid == ::geteuid();
}

} // namespace

Listener Listener::on_port(int port) {
    auto const where = concat("127.0.0.1:", port);
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int const yes = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    socklen_t bytes = sizeof address;
    if (!socket.is_open() || !bind_to(socket, address) ||
        ::listen(socket.get(), waiting_connections) != 0 ||
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0) {
        throw no_listener(where, system_text(errno), "Name another --port, or leave --port out");
    }
    return {std::move(socket), ntohs(address.sin_port), {}};
}

Listener Listener::on_socket(std::filesystem::path path) {
    auto const address = unix_address(path);
    remove_left_over(path, address);
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    auto const mask = ::umask(0177);
    bool const bound = socket.is_open() && bind_to(socket, address);
    int const failure = errno;
    ::umask(mask);
    if (!bound || ::listen(socket.get(), waiting_connections) != 0) {
        throw no_listener(path.string(), system_text(bound ? errno : failure),
                          "Name a --socket in a directory that you can write to");
    }
    return {std::move(socket), 0, std::move(path)};
}

Listener::~Listener() {
    if (socket_.is_open() && !path_.empty()) {
        ::unlink(path_.c_str());
    }
}

Descriptor Listener::accepted() const {
    Descriptor connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.is_open() && port_ == 0 && !is_of_this_user(connection.get())) {
        return {};
    }
    return connection;
}

} // namespace lockstep::serve
