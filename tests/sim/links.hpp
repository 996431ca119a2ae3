#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::sim {

inline constexpr int max_ranks = 16;

/// Bytes from one rank to another.
struct Link {
    std::atomic<std::uint64_t> written;
    std::atomic<std::uint64_t> read;
    std::byte ring[1 << 16];
};

/// What all ranks share.
struct SharedLinks {
    std::atomic<int> joined;
    std::atomic<int> left;
    std::atomic<int> process[max_ranks];
    std::atomic<bool> gone[max_ranks];
    Link links[max_ranks][max_ranks]; ///< [from][to]
};

/// What goes before a message, so that two ends that do not fit are found.
struct MessageHeader {
    std::uint64_t bytes = 0;
    std::uint32_t call = 0;
    std::uint32_t root = 0;
};

/// A message under way, at one of its ends.
struct Transfer {
    bool sends = false;
    int peer = 0;
    std::byte* data = nullptr;
    MessageHeader header;
    MessageHeader came{};
    std::uint64_t at = 0; ///< of header and data together

    bool done() const { return at == sizeof(MessageHeader) + header.bytes; }
};

/// The links of one rank, in shared memory that rank 0 made.
class Links {
  public:
    /// Throws  std::system_error
    static void create(std::string const& name);
    static void unlink(std::string const& name) noexcept;
    Links(std::string const& name, int rank, int ranks);
    Links(Links const&) = delete;
    Links& operator=(Links const&) = delete;
    ~Links();

    SharedLinks& shared() noexcept { return *shared_; }
    /// Moves what can be moved now, all transfers together, those between the same two ranks one
    /// after the other. Returns whether anything moved; `wrong` says what does not fit.
    bool move(std::vector<Transfer>& transfers, std::string& wrong);
    /// A rank that has ended, or -1.
    int gone() const;

  private:
    bool move(Transfer& transfer);

    int rank_;
    int ranks_;
    SharedLinks* shared_ = nullptr;
};

} // namespace lockstep::sim
