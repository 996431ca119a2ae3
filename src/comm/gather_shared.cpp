#include "comm/gather_shared.hpp"

#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/hosts.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace lockstep::comm {

namespace {

constexpr std::int64_t word = sizeof(std::uint64_t);

/// Where each rank's bytes lie: host by host, so that what a host's ranks have is one slice of its
/// leader's.
struct Places {
    Places(Hosts const& hosts, std::vector<std::int64_t> const& sizes) : first_word(sizes.size()) {
        for (auto const& ranks : hosts.ranks) {
            auto words = host_words.back();
            for (auto const rank : ranks) {
                auto const at = static_cast<std::size_t>(rank);
                first_word[at] = words;
                words += (sizes[at] + word - 1) / word;
            }
            host_words.push_back(words);
        }
    }
    std::size_t bytes() const {
        return static_cast<std::size_t>(std::max<std::int64_t>(host_words.back() * word, 1));
    }

    std::vector<std::int64_t> first_word;    ///< of each rank
    std::vector<std::int64_t> host_words{0}; ///< bounds of each host's slice
};

} // namespace

GatheredBytes gather_shared(Communicator const& comm, std::span<std::byte const> bytes,
                            HostLayout const& layout) {
    auto const sizes = all_gather(comm, static_cast<std::int64_t>(bytes.size()));
    auto host = layout.split(comm);
    Places places(hosts_from(leaders(comm, host)), sizes);
    std::shared_ptr<SharedBlock const> memory;
    auto const refused =
        failure_of([&] { memory = std::make_shared<SharedBlock>(host, places.bytes()); });
    if (!all_ranks(comm, !refused)) {
        // It takes more memory, but it works: every rank is a host of its own.
        host = comm.split(comm.rank());
        places = Places(hosts_from(leaders(comm, host)), sizes);
        memory = std::make_shared<SharedBlock>(host, places.bytes());
    }
    auto const place_of = [&](int rank) {
        return memory->data() + places.first_word[static_cast<std::size_t>(rank)] * word;
    };
    std::ranges::copy(bytes, place_of(comm.rank()));
    barrier(host); // the leader sends what all have put there
    auto const speakers = comm.split(host.is_root() ? 0 : 1);
    if (host.is_root()) {
        std::span const words(reinterpret_cast<std::uint64_t*>(memory->data()),
                              static_cast<std::size_t>(places.host_words.back()));
        all_gather_slices(speakers, words, places.host_words);
    }
    barrier(host); // the others read what the leader has received
    GatheredBytes gathered{memory, {}};
    for (int rank = 0; rank < comm.size(); ++rank) {
        gathered.of_rank.emplace_back(
            place_of(rank), static_cast<std::size_t>(sizes[static_cast<std::size_t>(rank)]));
    }
    return gathered;
}

} // namespace lockstep::comm
