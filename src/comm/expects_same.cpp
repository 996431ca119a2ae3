#include "comm/expects_same.hpp"

#include "base/expects.hpp"
#include "base/hash.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"

#include <cstdint>
#include <span>

namespace lockstep::comm {

void expects_same(Communicator const& world, std::string const& facts, char const* rule,
                  std::source_location at) {
    std::uint64_t const own = hash64(facts);
    auto root = own;
    broadcast(world, std::span(&root, 1));
    agree(world, "comparing what the ranks share", [&] { expects(own == root, rule, at); });
}

} // namespace lockstep::comm
