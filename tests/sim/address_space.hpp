#pragma once

#include <cstddef>

namespace lockstep::sim {

/// Memory with two addresses: the host's, which can be closed to it, and the kernels'. What a
/// kernel does is never seen through an address that was opened for a moment.
class AddressSpace {
  public:
    /// `name`: in /proc. `open_to_host`: at first, and for ever where nothing protects a part.
    ///
    /// Throws  std::system_error
    AddressSpace(char const* name, std::size_t bytes, bool open_to_host);
    AddressSpace(AddressSpace const&) = delete;
    AddressSpace& operator=(AddressSpace const&) = delete;
    ~AddressSpace();

    bool holds(void const* at) const noexcept {
        return offset(at) >= 0 && static_cast<std::size_t>(offset(at)) < bytes_;
    }
    std::ptrdiff_t offset(void const* at) const noexcept {
        return static_cast<std::byte const*>(at) - host_;
    }
    std::byte* at(std::size_t offset) const noexcept { return host_ + offset; }
    /// The kernels' address of what lies at one of the host's.
    std::byte* kernels(void const* at) const noexcept { return kernels_ + offset(at); }

  private:
    std::size_t bytes_;
    std::byte* host_ = nullptr;
    std::byte* kernels_ = nullptr;
};

} // namespace lockstep::sim
