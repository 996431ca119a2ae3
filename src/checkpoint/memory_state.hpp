#pragma once

#include "checkpoint/memory_copy.hpp"
#include "checkpoint/parts_table.hpp"
#include "comm/host_layout.hpp"
#include "comm/request_desk.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// The newest state of a run that hosts have in memory, wherever its parts are: see MemoryCopies.
/// Ranks read parts of their own host where they lie, and ask other hosts for the rest.
class MemoryState {
  public:
    struct Search {
        std::uint64_t run = 0; ///< as in CopyHeader
        std::uint64_t job = 0;
        std::int64_t after = -1; ///< only later steps are of use
        std::filesystem::path directory = memory_directory;
        comm::HostLayout layout{};
    };

    /// The newest step after `after` of which each part is on some host and verifies; null: there
    /// is none. Copies that do not verify are skipped.
    ///
    /// Collective  over `world`, which must outlive it; the same answer on all ranks
    static std::shared_ptr<MemoryState> find(comm::Communicator const& world, Search const& search);

    MemoryState(MemoryState const&) = delete;
    MemoryState& operator=(MemoryState const&) = delete;
    ~MemoryState() = default;

    std::int64_t step() const noexcept { return step_; }
    /// As if it were a checkpoint. What it reads is there until `close`.
    std::shared_ptr<Reader const> const& reader() const noexcept { return reader_; }

    /// Ends the reading.
    ///
    /// Collective  over the world
    void close();

  private:
    MemoryState() = default;

    /// The copies that this rank reads itself, by whose parts they are.
    using Mapped = std::map<int, std::pair<MappedCopy, PartsTable>>;

    /// Collective  over `world`
    void open(comm::Communicator const& world, std::vector<int> holders,
              std::vector<PartsTable> tables);
    std::string answer(std::string const& request) const;

    std::int64_t step_ = 0;
    Mapped mapped_;
    std::unique_ptr<comm::RequestDesk> desk_; ///< null: all parts are on each host
    std::shared_ptr<Reader const> reader_;
};

} // namespace lockstep::checkpoint
