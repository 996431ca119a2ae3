// Messages of every length between ranks, in slices or whole, both ways at once and in order.

#include "comm/collectives.hpp"
#include "comm/wire.hpp"

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "catch.hpp"
#include "world.hpp"

using namespace lockstep;

namespace {

using Bytes = std::vector<std::byte>;

/// Message `number` from one rank to another, of so many bytes.
Bytes message(int from, int to, std::size_t number, std::size_t bytes) {
    std::minstd_rand random(static_cast<unsigned>(1 + from * 1009 + to * 31 + number * 7));
    Bytes all(bytes);
    for (auto& byte : all) {
        byte = static_cast<std::byte>(random());
    }
    return all;
}

// About the borders of slices, short ones and long ones.
constexpr std::size_t kib = 1024;
std::vector<std::size_t> const lengths{
    1,         60 * kib - 1,  60 * kib,   60 * kib + 1, 200 * kib,
    512 * kib, 512 * kib + 1, 1024 * kib, 9 * kib,      2500 * kib + 3,
    5};

} // namespace

TEST_CASE("messages of any length arrive whole and in order, both ways at once") {
    auto const& world = test::world();
    auto const wire = comm::mpi_wire(world.duplicate());
    constexpr double limit_s = 60;
    for (int round = 0; round < 3; ++round) {
        auto const sent = std::make_shared<std::vector<Bytes>>();
        auto const received = std::make_shared<std::vector<Bytes>>();
        auto const out = wire->flight(sent);
        auto const in = wire->flight(received);
        for (int other = 0; other < world.size(); ++other) {
            for (std::size_t i = 0; i < lengths.size() && other != world.rank(); ++i) {
                sent->push_back(message(world.rank(), other, i, lengths[i]));
                received->emplace_back(lengths[i]);
            }
        }
        std::size_t at = 0;
        for (int other = 0; other < world.size(); ++other) {
            for (std::size_t i = 0; i < lengths.size() && other != world.rank(); ++i, ++at) {
                int const tag = i % 2 == 0 ? 4 : 5; // several with one tag
                in->receive(other, tag, (*received)[at]);
                out->send(other, tag, (*sent)[at]);
            }
        }
        in->wait(limit_s);
        out->wait(limit_s);
        CHECK(out->done());
        at = 0;
        for (int other = 0; other < world.size(); ++other) {
            for (std::size_t i = 0; i < lengths.size() && other != world.rank(); ++i, ++at) {
                CAPTURE(other, lengths[i]);
                CHECK((*received)[at] == message(other, world.rank(), i, lengths[i]));
            }
        }
    }
}

TEST_CASE("rank 0's bytes reach all ranks while messages are under way") {
    auto const& world = test::world();
    auto const wire = comm::mpi_wire(world.duplicate());
    auto const bytes = std::make_shared<Bytes>(70'000, static_cast<std::byte>(world.rank() + 1));
    auto const flight = wire->flight(bytes);
    flight->broadcast(*bytes);
    auto const sent = std::make_shared<Bytes>(message(world.rank(), 0, 0, 3'000'000));
    auto const received = std::make_shared<Bytes>(sent->size());
    auto const out = wire->flight(sent);
    auto const in = wire->flight(received);
    auto const next = (world.rank() + 1) % world.size();
    auto const before = (world.rank() + world.size() - 1) % world.size();
    in->receive(before, 1, *received);
    out->send(next, 1, *sent);
    flight->wait(60);
    in->wait(60);
    out->wait(60);
    CHECK(*bytes == Bytes(bytes->size(), std::byte{1}));
    CHECK(*received == message(before, 0, 0, sent->size()));
}
