#include "h5/refused_writes.hpp"

namespace lockstep::h5 {

namespace {

thread_local Disk* noting = nullptr;

} // namespace

RefusedWrites::RefusedWrites(Disk& disk) : outer_(noting) {
    noting = outer_ != nullptr ? outer_ : &disk;
}

RefusedWrites::~RefusedWrites() {
    noting = outer_;
}

Disk* RefusedWrites::disk() noexcept {
    return noting;
}

} // namespace lockstep::h5
