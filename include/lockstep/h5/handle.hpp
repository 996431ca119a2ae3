#pragma once

#include <cstdint>
#include <source_location>
#include <string_view>

namespace lockstep::h5 {

/// HDF5's own identifier type, without its header.
using Id = std::int64_t;

/// Throws an `Error` with the innermost text of HDF5's error stack unless `result` is >= 0;
/// returns it. HDF5 prints nothing by itself once a handle has been made.
///
/// Throws  Error 74; 65 for a call that reads
Id check(Id result, std::string_view call,
         std::source_location at = std::source_location::current());

/// An HDF5 identifier, closed by the function of its kind. Move-only.
/// Closing a parallel file is collective: such a handle lives in a scope that all ranks leave
/// together, and is closed by `File::close` on the normal road.
class Handle {
  public:
    using Closer = int (*)(Id);

    Handle() = default;
    Handle(Id id, Closer closer) noexcept : id_(id), closer_(closer) {}
    Handle(Handle&& other) noexcept;
    Handle& operator=(Handle&& other) noexcept;
    ~Handle();

    Id id() const noexcept { return id_; }
    explicit operator bool() const noexcept { return id_ >= 0; }

    /// Closes now and says what went wrong. Throws Error 74.
    void close();

  private:
    Id id_ = -1;
    Closer closer_ = nullptr;
};

} // namespace lockstep::h5
