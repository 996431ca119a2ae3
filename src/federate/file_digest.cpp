#include "federate/file_digest.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace lockstep::federate {

Digest digest_of(File const& file, std::uint64_t from) {
    constexpr std::uint64_t read_bytes = std::uint64_t{256} << 10;
    std::vector<std::byte> buffer(read_bytes);
    Digester digester;
    auto const size = file.size();
    for (auto at = from; at < size; at += read_bytes) {
        auto const part = std::span(buffer).first(std::min(read_bytes, size - at));
        file.read_at(at, part);
        digester.add(part);
    }
    return digester.digest();
}

} // namespace lockstep::federate
