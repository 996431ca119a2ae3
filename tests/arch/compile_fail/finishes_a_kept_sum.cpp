// A sum is over once it is finished: nobody keeps it to give it another bucket.
#include "comm/exchange.hpp"

std::span<double const> finish(lockstep::comm::GradientSum& sum) {
    return sum.finish({}, {});
}
