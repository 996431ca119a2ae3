#include "comm/collectives.hpp"

#include "base/packing.hpp"
#include "base/text.hpp"
#include "comm/messages.hpp"
#include "comm/native.hpp"
#include "comm/phase.hpp"
#include "comm/wait_scope.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <numeric>

#include "counts.hpp"

namespace lockstep::comm {

namespace {

MPI_Op raw(Reduce operation) {
    switch (operation) {
    case Reduce::sum:
        return MPI_SUM;
    case Reduce::minimum:
        return MPI_MIN;
    case Reduce::maximum:
        return MPI_MAX;
    }
    return MPI_OP_NULL;
}

template <Element T>
constexpr std::size_t max_of_ = call_bytes / sizeof(T);

/// A text that successive ranks have alike.
struct Run {
    std::uint64_t ranks = 0;
    std::string text;
};

std::vector<std::byte> packed(std::vector<Run> const& runs) {
    Packer packer;
    for (auto const& run : runs) {
        packer.put(run.ranks);
        packer.put(std::string_view(run.text));
    }
    return {packer.bytes().begin(), packer.bytes().end()};
}

void append(std::vector<Run>& runs, std::span<std::byte const> bytes) {
    for (Unpacker unpacker(bytes); !unpacker.at_end();) {
        auto const ranks = unpacker.get<std::uint64_t>();
        auto text = unpacker.get_text();
        if (!runs.empty() && runs.back().text == text) {
            runs.back().ranks += ranks;
        } else {
            runs.push_back({ranks, std::move(text)});
        }
    }
}

std::vector<std::string> texts_of(std::span<std::byte const> bytes) {
    std::vector<Run> runs;
    append(runs, bytes);
    std::vector<std::string> texts;
    for (auto const& run : runs) {
        texts.insert(texts.end(), run.ranks, run.text);
    }
    return texts;
}

/// On rank 0 the texts of all, elsewhere of some ranks: along a binomial tree, since MPI passes
/// slices of different length round a ring, in as many rounds as there are ranks.
std::vector<std::byte> gathered_runs(Communicator const& comm, std::string const& text) {
    WaitScope const wait(comm, Wait::all_gather);
    std::vector<Run> runs{{1, text}};
    for (int step = 1; step < comm.size(); step *= 2) {
        if (comm.rank() % (2 * step) != 0) {
            auto const bytes = packed(runs);
            auto length = static_cast<std::uint64_t>(bytes.size());
            send(comm, std::as_bytes(std::span(&length, 1)), comm.rank() - step);
            send(comm, bytes, comm.rank() - step);
            return bytes;
        }
        if (comm.rank() + step < comm.size()) {
            std::uint64_t length = 0;
            receive(comm, std::as_writable_bytes(std::span(&length, 1)), comm.rank() + step);
            std::vector<std::byte> bytes(length);
            receive(comm, bytes, comm.rank() + step);
            append(runs, bytes);
        }
    }
    return packed(runs);
}

} // namespace

template <Element T>
void broadcast(Communicator const& comm, std::span<T> values, int root) {
    WaitScope const wait(comm, Wait::broadcast);
    in_parts(values.size(), max_of_<T>, [&](std::size_t first, int length) {
        check(MPI_Bcast(values.data() + first, length, datatype<T>(), root, raw(comm)),
              "MPI_Bcast");
    });
}

void broadcast_text(Communicator const& comm, std::string& text, int root) {
    auto length = static_cast<std::uint64_t>(text.size());
    broadcast(comm, std::span(&length, 1), root);
    text.resize(length);
    broadcast(comm, std::as_writable_bytes(std::span(text)), root);
}

template <Element T>
void all_reduce(Communicator const& comm, std::span<T> values, Reduce operation) {
    WaitScope const wait(comm, Wait::all_reduce);
    in_parts(values.size(), max_of_<T>, [&](std::size_t first, int length) {
        check(MPI_Allreduce(MPI_IN_PLACE, values.data() + first, length, datatype<T>(),
                            raw(operation), raw(comm)),
              "MPI_Allreduce");
    });
}

template <Element T>
std::vector<T> all_gather(Communicator const& comm, T value) {
    WaitScope const wait(comm, Wait::all_gather);
    std::vector<T> values(static_cast<std::size_t>(comm.size()));
    check(MPI_Allgather(&value, 1, datatype<T>(), values.data(), 1, datatype<T>(), raw(comm)),
          "MPI_Allgather");
    return values;
}

template <Element T>
void all_gather_slices(Communicator const& comm, std::span<T> whole,
                       std::span<std::int64_t const> bounds) {
    auto const ranks = static_cast<std::size_t>(comm.size());
    std::vector<int> counts(ranks);
    std::vector<int> offsets(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        counts[rank] = mpi_count(bounds[rank + 1] - bounds[rank]);
        offsets[rank] = mpi_count(bounds[rank]);
    }
    WaitScope const wait(comm, Wait::all_gather);
    check(MPI_Allgatherv(MPI_IN_PLACE, 0, datatype<T>(), whole.data(), counts.data(),
                         offsets.data(), datatype<T>(), raw(comm)),
          "MPI_Allgatherv");
}

std::vector<std::string> gather_text(Communicator const& comm, std::string const& text) {
    auto const runs = gathered_runs(comm, text);
    return comm.is_root() ? texts_of(runs) : std::vector<std::string>{};
}

std::vector<std::string> all_gather_text(Communicator const& comm, std::string const& text) {
    auto runs = gathered_runs(comm, text);
    auto length = static_cast<std::uint64_t>(runs.size());
    broadcast(comm, std::span(&length, 1));
    runs.resize(length);
    broadcast(comm, std::span(runs));
    return texts_of(runs);
}

void barrier(Communicator const& comm) {
    WaitScope const wait(comm, Wait::barrier);
    check(MPI_Barrier(raw(comm)), "MPI_Barrier");
}

bool all_ranks(Communicator const& comm, bool condition) {
    return all_reduce(comm, condition ? 1 : 0, Reduce::minimum) == 1;
}

template void broadcast(Communicator const&, std::span<std::byte>, int);
template void all_reduce(Communicator const&, std::span<std::byte>, Reduce);
template std::vector<std::byte> all_gather(Communicator const&, std::byte);
template void all_gather_slices(Communicator const&, std::span<std::byte>,
                                std::span<std::int64_t const>);

template void broadcast(Communicator const&, std::span<int>, int);
template void all_reduce(Communicator const&, std::span<int>, Reduce);
template std::vector<int> all_gather(Communicator const&, int);
template void all_gather_slices(Communicator const&, std::span<int>, std::span<std::int64_t const>);

template void broadcast(Communicator const&, std::span<std::int64_t>, int);
template void all_reduce(Communicator const&, std::span<std::int64_t>, Reduce);
template std::vector<std::int64_t> all_gather(Communicator const&, std::int64_t);
template void all_gather_slices(Communicator const&, std::span<std::int64_t>,
                                std::span<std::int64_t const>);

template void broadcast(Communicator const&, std::span<std::uint64_t>, int);
template void all_reduce(Communicator const&, std::span<std::uint64_t>, Reduce);
template std::vector<std::uint64_t> all_gather(Communicator const&, std::uint64_t);
template void all_gather_slices(Communicator const&, std::span<std::uint64_t>,
                                std::span<std::int64_t const>);

template void broadcast(Communicator const&, std::span<float>, int);
template void all_reduce(Communicator const&, std::span<float>, Reduce);
template std::vector<float> all_gather(Communicator const&, float);
template void all_gather_slices(Communicator const&, std::span<float>,
                                std::span<std::int64_t const>);

template void broadcast(Communicator const&, std::span<double>, int);
template void all_reduce(Communicator const&, std::span<double>, Reduce);
template std::vector<double> all_gather(Communicator const&, double);
template void all_gather_slices(Communicator const&, std::span<double>,
                                std::span<std::int64_t const>);

} // namespace lockstep::comm
