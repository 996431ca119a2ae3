// What the others here do, but right: this must compile.
#include "comm/collectives.hpp"
#include "comm/exchange.hpp"

#include <vector>

void control(lockstep::comm::Communicator const& comm) {
    lockstep::comm::Communicator const copy = comm.duplicate();
    std::vector<float> values(3);
    lockstep::comm::broadcast(copy, std::span(values));
}

double control(lockstep::comm::Exchange& exchange) {
    auto sum = exchange.begin();
    sum.ready(0);
    auto const squares = std::move(sum).finish({}, {});
    exchange.publish();
    return squares.front();
}
