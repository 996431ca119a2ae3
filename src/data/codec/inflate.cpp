#include "inflate.hpp"

#include <libdeflate.h>
#include <memory>
#include <new>

namespace lockstep::data {

bool inflate_into(std::span<std::byte const> stored, std::span<std::byte> into) {
    auto const free = [](libdeflate_decompressor* used) { libdeflate_free_decompressor(used); };
    std::unique_ptr<libdeflate_decompressor, decltype(free)> const decompressor(
        libdeflate_alloc_decompressor(), free);
    if (!decompressor) {
        throw std::bad_alloc();
    }
    return libdeflate_zlib_decompress(decompressor.get(), stored.data(), stored.size(), into.data(),
                                      into.size(), nullptr) == LIBDEFLATE_SUCCESS;
}

} // namespace lockstep::data
