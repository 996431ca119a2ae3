#pragma once

#include <cstdint>
#include <source_location>
#include <string_view>

namespace lockstep::h5 {

/// HDF5's own identifier type, without its header.
using Id = std::int64_t;

/// What a call was doing when it failed, which decides the exit code.
enum class Doing {
    reading, ///< what is in a file: 65, since it is damaged or has another layout
    writing, ///< 74
    planning ///< shapes, types and property lists, only in memory: 71
};

/// Throws an `Error` with the innermost text of HDF5's error stack unless `result` is >= 0;
/// returns it. HDF5 prints nothing by itself once a handle has been made.
///
/// Throws  Error as `doing` says; where the system refused a call, the code of `system_error`
Id check(Id result, Doing doing, std::string_view call,
         std::source_location at = std::source_location::current());

/// An HDF5 identifier, closed by the function of its kind. Move-only. A write may fail as late as
/// at the close: writers must close explicitly. Closing a parallel file is collective: such a
/// handle belongs in a scope that all ranks leave together, and is normally closed by
/// `File::close`.
class Handle {
  public:
    using Closer = int (*)(Id);

    Handle() = default;
    Handle(Id id, Closer closer) noexcept : id_(id), closer_(closer) {}
    Handle(Handle&& other) noexcept;
    Handle& operator=(Handle&& other) noexcept;
    ~Handle();

    [[nodiscard]] Id id() const noexcept { return id_; }
    explicit operator bool() const noexcept { return id_ >= 0; }

    /// Closes now, and reports what went wrong. Throws Error 74.
    void close(std::string_view what = "an HDF5 object");

  private:
    Id id_ = -1;
    Closer closer_ = nullptr;
};

} // namespace lockstep::h5
