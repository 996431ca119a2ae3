#pragma once

// A simulated accelerator: memory of its own that host code cannot touch, streams that work later,
// events, pinned host memory. Knows nothing of torch. Two uses of memory that nothing orders are
// found as the later one is launched (shadow.hpp), whatever the timing; what is read too early is
// garbage besides, since streams pause at random and freed memory is overwritten.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

namespace lockstep::sim {

/// Two uses of memory that nothing orders.
struct Race : std::logic_error {
    using std::logic_error::logic_error;
};

class Stream;
struct Version;

/// What an event recorded: a moment of a stream. Null: it recorded nothing yet.
using Mark = std::shared_ptr<Version>;

/// Memory of a device, or pinned on the host, that a kernel uses.
struct Range {
    void const* data = nullptr;
    std::size_t bytes = 0;
    bool writes = false;
};

// --- devices and streams; the current ones are those of the calling thread

int device_count();
int current_device();
/// Throws  std::invalid_argument where there is none
void set_current_device(int device);
/// The device's default stream is 0. Throws  std::invalid_argument where there is none
Stream& stream(int device, std::int64_t id);
Stream& new_stream(int device);
Stream& current_stream(int device);
void set_current_stream(Stream& stream);
int device_of(Stream const& stream);
std::int64_t id_of(Stream const& stream);

// --- work

/// Whether kernels do anything. Else whoever would launch one says so, with neither memory nor
/// work.
bool has_kernels();

/// Puts a kernel on a stream.
///
/// Throws  Race; std::logic_error where a range is not within one living block
void launch(Stream& on, char const* kernel, std::vector<Range> const& ranges,
            std::function<void()> work);
Mark record(Stream& on);
/// Later work of the stream waits for the mark; the host does not.
void wait(Stream& later, Mark const& mark);
bool is_done(Mark const& mark);
bool is_idle(Stream& stream);
/// The host waits. Throws  what a kernel threw
void synchronize(Mark const& mark);
void synchronize(Stream& stream);
void synchronize_device(int device);
/// Seconds of a steady clock. Only of a mark that is done.
double time_of(Mark const& mark);

// --- recorded work

struct Graph;
/// Memory of recorded work: is used again by later work that is recorded for it, and by nothing
/// else while it or a graph of its exists.
struct GraphMemory;

std::shared_ptr<GraphMemory> new_graph_memory();
/// From now on, work that is launched on the stream is recorded, not done. What would have to be
/// done at once is refused then: waits of the host, events, and uses of the host's memory, in which
/// a replay would find other values.
///
/// Throws  std::logic_error for a device's default stream
void begin_recording(Stream& on, std::shared_ptr<GraphMemory> const& memory);
/// Throws  std::logic_error where something was refused: it is to be abandoned
std::shared_ptr<Graph> end_recording(Stream& on);
void abandon_recording(Stream& on) noexcept;
/// Throws  std::logic_error naming `what`, if the stream records
void refuse_in_recording(Stream const& on, char const* what);
/// Launches all of it. Throws  as `launch`
void replay(Graph const& graph, Stream& on);

// --- memory

/// On the current device, for use by its current stream; null: there is not so much.
void* allocate(std::size_t bytes);
void free(void* data) noexcept;
/// Another stream uses the block, too: it is not given away before that stream has done its work.
void record_stream(void const* data, Stream& user);
/// -1: it is no device's
int device_of(void const* data);
/// Where a kernel finds memory of a device or pinned memory.
///
/// Throws  std::logic_error where it is not within one living block
void* kernel_view(void const* data, std::size_t bytes);
void* pin(std::size_t bytes);
void unpin(void* data) noexcept;
bool is_pinned(void const* data);

// --- addresses whose memory comes and goes

constexpr std::size_t page_bytes = std::size_t{32} << 10;

/// Addresses on the current device, without memory; null: there are not so many.
void* reserve(std::size_t bytes);
void unreserve(void* data) noexcept;
/// Gives whole pages of them memory of any contents. False: there is not so much.
bool populate(void* data, std::size_t bytes);
/// Takes it away.
///
/// Throws  Race where the host has not waited for what uses it
void discard(void* data, std::size_t bytes);

struct MemoryUse {
    std::size_t used = 0, peak = 0, reserved = 0, all = 0;
};
MemoryUse memory_use(int device);
void reset_peak(int device);

/// Counts with how many others a rank has messages.
void count_peers(std::size_t peers);

} // namespace lockstep::sim
