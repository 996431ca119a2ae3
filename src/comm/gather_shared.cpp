#include "comm/gather_shared.hpp"

#include "comm/collectives.hpp"
#include "comm/hosts.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace lockstep::comm {

GatheredBytes gather_shared(Communicator const& comm, std::span<std::byte const> bytes,
                            HostLayout const& layout) {
    constexpr std::int64_t word = sizeof(std::uint64_t);
    auto const host = layout.split(comm);
    auto const hosts = hosts_from(leaders(comm, host));
    auto const sizes = all_gather(comm, static_cast<std::int64_t>(bytes.size()));
    // Host by host, so that what a host's ranks have is one slice of its leader's.
    std::vector<std::int64_t> first_word(sizes.size());
    std::vector<std::int64_t> host_words{0};
    for (auto const& ranks : hosts.ranks) {
        auto words = host_words.back();
        for (auto const rank : ranks) {
            auto const at = static_cast<std::size_t>(rank);
            first_word[at] = words;
            words += (sizes[at] + word - 1) / word;
        }
        host_words.push_back(words);
    }
    auto const memory = std::make_shared<SharedBlock>(
        host, std::max<std::size_t>(static_cast<std::size_t>(host_words.back() * word), 1));
    auto const own = first_word[static_cast<std::size_t>(comm.rank())] * word;
    std::ranges::copy(bytes, memory->data() + own);
    barrier(host); // the leader sends what all have put there
    auto const speakers = comm.split(host.is_root() ? 0 : 1);
    if (host.is_root()) {
        std::span const words(reinterpret_cast<std::uint64_t*>(memory->data()),
                              static_cast<std::size_t>(host_words.back()));
        all_gather_slices(speakers, words, host_words);
    }
    barrier(host); // the others read what the leader has received
    GatheredBytes gathered{memory, {}};
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
        gathered.of_rank.emplace_back(memory->data() + first_word[rank] * word,
                                      static_cast<std::size_t>(sizes[rank]));
    }
    return gathered;
}

} // namespace lockstep::comm
