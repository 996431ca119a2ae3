#include "links.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace lockstep::sim {

namespace {

int checked(int result, char const* what) {
    if (result < 0) {
        throw std::system_error(errno, std::generic_category(), what);
    }
    return result;
}

} // namespace

void Links::create(std::string const& name) {
    unlink(name); // a killed process that had this one's number may have left it
    int const file = checked(::shm_open(name.c_str(), O_CREAT | O_RDWR | O_EXCL, 0600), "shm_open");
    int const result = ::ftruncate(file, sizeof(SharedLinks));
    ::close(file);
    checked(result, "ftruncate");
}

void Links::unlink(std::string const& name) noexcept {
    ::shm_unlink(name.c_str());
}

Links::Links(std::string const& name, int rank, int ranks) : rank_(rank), ranks_(ranks) {
    int const file = checked(::shm_open(name.c_str(), O_RDWR, 0), "shm_open");
    void* const at =
        ::mmap(nullptr, sizeof(SharedLinks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    checked(at == MAP_FAILED ? -1 : 0, "mmap");
    shared_ = static_cast<SharedLinks*>(at);
}

Links::~Links() {
    ::munmap(shared_, sizeof(SharedLinks));
}

int Links::gone() const {
    for (int other = 0; other < ranks_; ++other) {
        int const process = shared_->process[other];
        if (shared_->gone[other] || (process != 0 && ::kill(process, 0) != 0)) {
            return other;
        }
    }
    return -1;
}

/// One stretch of bytes; false: the link is full, or empty.
bool Links::move(Transfer& transfer) {
    auto& link = transfer.sends ? shared_->links[rank_][transfer.peer]
                                : shared_->links[transfer.peer][rank_];
    constexpr auto ring = sizeof link.ring;
    bool const in_header = transfer.at < sizeof(MessageHeader);
    auto const left = (in_header ? 0 : transfer.header.bytes) + sizeof(MessageHeader) - transfer.at;
    auto const place = transfer.sends ? link.written.load() : link.read.load();
    auto const room =
        transfer.sends ? ring - (place - link.read.load()) : link.written.load() - place;
    auto const bytes = std::min({left, room, ring - place % ring});
    if (bytes == 0) {
        return false;
    }
    auto* const header =
        reinterpret_cast<std::byte*>(transfer.sends ? &transfer.header : &transfer.came);
    auto* const local =
        in_header ? header + transfer.at : transfer.data + (transfer.at - sizeof(MessageHeader));
    if (transfer.sends) {
        std::memcpy(link.ring + place % ring, local, bytes);
        link.written += bytes;
    } else {
        std::memcpy(local, link.ring + place % ring, bytes);
        link.read += bytes;
    }
    transfer.at += bytes;
    return true;
}

bool Links::move(std::vector<Transfer>& transfers, std::string& wrong) {
    bool moved = false;
    std::map<std::pair<bool, int>, bool> busy;
    for (auto& each : transfers) {
        if (each.done() || std::exchange(busy[{each.sends, each.peer}], true)) {
            continue;
        }
        while (!each.done() && move(each)) {
            moved = true;
            if (!each.sends && each.at == sizeof(MessageHeader) &&
                std::memcmp(&each.came, &each.header, sizeof(MessageHeader)) != 0) {
                wrong = "rank " + std::to_string(each.peer) + " sends " +
                        std::to_string(each.came.bytes) + " bytes (call " +
                        std::to_string(each.came.call) + "), rank " + std::to_string(rank_) +
                        " receives " + std::to_string(each.header.bytes) + " (call " +
                        std::to_string(each.header.call) + ")";
                return true;
            }
        }
    }
    return moved;
}

} // namespace lockstep::sim
