#pragma once

#include <dlfcn.h>

namespace lockstep {

/// A library of a device's driver, which may be missing: no build needs it. Kept until the process
/// ends, since drivers dislike being unloaded.
class DriverLibrary {
  public:
    explicit DriverLibrary(char const* name) : handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}

    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /// Calls a function that returns 0 for success; returns whether it exists and succeeded.
    template <class... Arguments>
    bool call(char const* name, Arguments... arguments) const {
        using Function = int (*)(Arguments...);
        auto const function =
            handle_ == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(handle_, name));
        return function != nullptr && function(arguments...) == 0;
    }

  private:
    void* handle_;
};

} // namespace lockstep
