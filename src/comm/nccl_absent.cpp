#include "comm/nccl.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::comm {

namespace {

[[noreturn]] void absent() {
    throw Error(ExitCode::unavailable,
                {"NCCL is not usable", "this program was built without NCCL",
                 "Set communication.backend = mpi, or build with NCCL: configure with "
                 "-DLOCKSTEP_WITH_NCCL=ON"});
}

} // namespace

struct NcclCommunicator::State {};
struct NcclMemory::Block {};

bool nccl_available() {
    return false;
}
std::string nccl_version() {
    absent();
}
int device_count() {
    return 0;
}
bool each_rank_has_own_device(Communicator const&, int) {
    return false;
}
std::vector<std::byte> broadcast_unique_id(Communicator const&) {
    absent();
}

// Nothing below the constructor can be reached, since it always throws.
NcclCommunicator::NcclCommunicator(Communicator const&, NcclOptions const&) {
    absent();
}
NcclCommunicator::NcclCommunicator(NcclCommunicator&&) noexcept = default;
NcclCommunicator::~NcclCommunicator() = default;
void NcclCommunicator::all_reduce_sum(DeviceSpan, DeviceStream) {
    absent();
}
void NcclCommunicator::reduce_scatter_sum(DeviceView, DeviceSpan, DeviceStream) {
    absent();
}
void NcclCommunicator::all_gather(DeviceView, DeviceSpan, DeviceStream) {
    absent();
}
void NcclCommunicator::broadcast(DeviceSpan, int, DeviceStream) {
    absent();
}
void NcclCommunicator::exchange(std::span<DeviceExchange const>, DeviceStream) {
    absent();
}
void NcclCommunicator::wait(DeviceStream) {
    absent();
}
void NcclCommunicator::check_async() {
    absent();
}
void NcclCommunicator::synchronize(double) {
    absent();
}
NcclMemory NcclCommunicator::allocate(std::size_t) {
    absent();
}
NcclMemory::NcclMemory() noexcept = default;
NcclMemory::NcclMemory(NcclMemory&&) noexcept = default;
NcclMemory& NcclMemory::operator=(NcclMemory&&) noexcept = default;
NcclMemory::~NcclMemory() = default;
void* NcclMemory::data() const noexcept {
    return nullptr;
}
void NcclCommunicator::abort() noexcept {}
int NcclCommunicator::device() const noexcept {
    return -1;
}

} // namespace lockstep::comm
