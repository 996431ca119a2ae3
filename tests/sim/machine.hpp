#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "blocks.hpp"
#include "call_counts.hpp"
#include "counts_file.hpp"
#include "graph.hpp"
#include "options.hpp"
#include "runtime.hpp"
#include "stream.hpp"

namespace lockstep::sim {

/// All devices of this process. Safe for many threads, which count as one in what is ordered.
class Machine {
  public:
    /// The machine of the process; never ends, since streams outlive its last statement.
    static Machine& instance();

    explicit Machine(Options const& options);

    Options const& options() const noexcept { return options_; }
    Stream& stream(int device, std::int64_t id);
    Stream& new_stream(int device);
    std::vector<Stream*> streams_of(int device);

    void launch(Stream& on, char const* kernel, std::vector<Range> const& ranges,
                std::function<void()> work);
    Mark record(Stream& on);
    void wait(Stream& later, Mark const& mark);
    bool is_done(Mark const& mark);
    bool is_idle(Stream& stream);
    void synchronize(Mark const& mark);

    std::shared_ptr<GraphMemory> new_graph_memory();
    void begin_recording(Stream& on, std::shared_ptr<GraphMemory> memory);
    std::shared_ptr<Graph> end_recording(Stream& on);
    void abandon_recording(Stream& on) noexcept;
    void refuse_in_recording(Stream const& on, char const* what);
    void replay(Graph const& graph, Stream& on);

    void* allocate(int device, Stream& home, std::size_t bytes);
    void free(void* data) noexcept;
    void record_stream(void const* data, Stream& user);
    void* reserve(int device, std::size_t bytes);
    void unreserve(void* data) noexcept;
    bool populate(void* data, std::size_t bytes);
    void discard(void* data, std::size_t bytes);
    void* pin(std::size_t bytes);
    void unpin(void* data) noexcept;
    void* kernel_view(void const* data, std::size_t bytes);
    int device_of(void const* data) const { return blocks_.device_of(data); }
    bool is_pinned(void const* data) const { return blocks_.is_pinned(data); }
    MemoryUse memory_use(int device);
    void reset_peak(int device);
    void count_peers(std::size_t peers);
    void count_call(char const* name);

  private:
    // All of these: under the lock.
    Stream& add_stream(int device, std::int64_t id);
    void enqueue(Stream& on, char const* kernel, std::vector<Range> const& ranges,
                 std::function<void()> work, bool is_kernel);
    void use(Stream const& on, char const* kernel, Range const& range);
    void tell(Block const& block, Shadow::Conflict const& conflict, Access const& access);
    void host_has_waited_for(Clock const& clock);
    void overwrite(Block& block);
    void give_back(Block& block);
    Recording* recording_of(Stream const& stream);
    void refuse(Stream const& on, std::string const& what);
    void end_graph_memory(int number);
    void reclaim();

    Options options_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Stream>> streams_;
    Clock host_; ///< what the host has waited for
    Blocks blocks_;
    std::vector<Block*> leaving_; ///< freed while streams used them
    std::vector<Block*> closed_;  ///< pinned, and pending
    std::vector<Recording> recordings_;
    int graph_memories_ = 0; ///< made so far
    CountsFile counts_;
    CallCounts calls_;
};

} // namespace lockstep::sim
