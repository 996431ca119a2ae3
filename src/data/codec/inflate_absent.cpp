#include <zlib.h>

#include "inflate.hpp"

namespace lockstep::data {

// Half as fast as libdeflate, which was not there when this was built.
bool inflate_into(std::span<std::byte const> stored, std::span<std::byte> into) {
    auto length = static_cast<uLongf>(into.size());
    return ::uncompress(reinterpret_cast<Bytef*>(into.data()), &length,
                        reinterpret_cast<Bytef const*>(stored.data()),
                        static_cast<uLong>(stored.size())) == Z_OK &&
           length == into.size();
}

} // namespace lockstep::data
