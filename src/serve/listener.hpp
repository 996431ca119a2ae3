#pragma once

#include "base/descriptor.hpp"

#include <filesystem>
#include <string>

namespace lockstep::serve {

/// A socket that accepts connections of this machine: a port of 127.0.0.1, or a Unix socket that
/// only this user can open, which is removed at the end.
class Listener {
  public:
    /// `port` 0: a free one.
    ///
    /// Throws  Error 73 where the port is taken
    static Listener on_port(int port);
    /// Throws  Error 64 for a path that is too long; 73 where something else has that name
    static Listener on_socket(std::filesystem::path path);

    Listener(Listener&&) noexcept = default;
    Listener& operator=(Listener&&) = delete;
    ~Listener();

    int descriptor() const noexcept { return socket_.get(); }
    int port() const noexcept { return port_; } ///< 0: a Unix socket

    /// The next connection of this user, non-blocking; none where nobody is waiting, or another
    /// user is.
    Descriptor accepted() const;

  private:
    Listener(Descriptor socket, int port, std::filesystem::path path)
        : socket_(std::move(socket)), port_(port), path_(std::move(path)) {}

    Descriptor socket_;
    int port_ = 0;
    std::filesystem::path path_;
};

} // namespace lockstep::serve
