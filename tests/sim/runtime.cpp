#include "runtime.hpp"

#include <map>
#include <string>

#include "machine.hpp"

namespace lockstep::sim {

namespace {

Machine& machine() {
    return Machine::instance();
}

/// What each thread has chosen.
struct Current {
    int device = 0;
    std::map<int, Stream*> streams; ///< by device
};

constexpr char const* host_waits = "a wait of the host";

Current& current() {
    thread_local Current chosen;
    return chosen;
}

} // namespace

int device_count() {
    return machine().options().devices;
}
int current_device() {
    return current().device;
}
void set_current_device(int device) {
    if (device < 0 || device >= device_count()) {
        throw std::invalid_argument("sim: no device " + std::to_string(device));
    }
    current().device = device;
}
Stream& stream(int device, std::int64_t id) {
    return machine().stream(device, id);
}
Stream& new_stream(int device) {
    return machine().new_stream(device);
}
Stream& current_stream(int device) {
    auto& found = current().streams[device];
    if (found == nullptr) {
        found = &stream(device, 0);
    }
    return *found;
}
void set_current_stream(Stream& stream) {
    current().streams[stream.device()] = &stream;
}
int device_of(Stream const& stream) {
    return stream.device();
}
std::int64_t id_of(Stream const& stream) {
    return stream.id();
}

bool has_kernels() {
    return machine().options().kernels;
}

void launch(Stream& on, char const* kernel, std::vector<Range> const& ranges,
            std::function<void()> work) {
    machine().count_call(kernel);
    machine().launch(on, kernel, ranges, std::move(work));
}
Mark record(Stream& on) {
    machine().count_call("an event");
    return machine().record(on);
}
void wait(Stream& later, Mark const& mark) {
    machine().count_call("a wait of a stream");
    machine().wait(later, mark);
}
bool is_done(Mark const& mark) {
    return machine().is_done(mark);
}
bool is_idle(Stream& stream) {
    return machine().is_idle(stream);
}
void synchronize(Mark const& mark) {
    machine().count_call(host_waits);
    machine().synchronize(mark);
}
void synchronize(Stream& stream) {
    machine().count_call(host_waits);
    machine().synchronize(machine().record(stream));
}
void synchronize_device(int device) {
    for (auto* const each : machine().streams_of(device)) {
        synchronize(*each);
    }
}
double time_of(Mark const& mark) {
    return mark->time;
}

std::shared_ptr<GraphMemory> new_graph_memory() {
    return machine().new_graph_memory();
}
void begin_recording(Stream& on, std::shared_ptr<GraphMemory> const& memory) {
    machine().begin_recording(on, memory);
}
std::shared_ptr<Graph> end_recording(Stream& on) {
    return machine().end_recording(on);
}
void abandon_recording(Stream& on) noexcept {
    machine().abandon_recording(on);
}
void refuse_in_recording(Stream const& on, char const* what) {
    machine().refuse_in_recording(on, what);
}
void replay(Graph const& graph, Stream& on) {
    machine().count_call("a replay");
    machine().replay(graph, on);
}

void* allocate(std::size_t bytes) {
    machine().count_call("an allocation");
    return machine().allocate(current_device(), current_stream(current_device()), bytes);
}
void free(void* data) noexcept {
    machine().free(data);
}
void record_stream(void const* data, Stream& user) {
    machine().record_stream(data, user);
}
int device_of(void const* data) {
    return machine().device_of(data);
}
void* kernel_view(void const* data, std::size_t bytes) {
    return machine().kernel_view(data, bytes);
}
void* pin(std::size_t bytes) {
    machine().count_call("an allocation of pinned memory");
    return machine().pin(bytes);
}
void unpin(void* data) noexcept {
    machine().unpin(data);
}
void* reserve(std::size_t bytes) {
    return machine().reserve(current_device(), bytes);
}
void unreserve(void* data) noexcept {
    machine().unreserve(data);
}
bool populate(void* data, std::size_t bytes) {
    machine().count_call("pages that come");
    return machine().populate(data, bytes);
}
void discard(void* data, std::size_t bytes) {
    machine().count_call("pages that go");
    machine().discard(data, bytes);
}
bool is_pinned(void const* data) {
    return machine().is_pinned(data);
}
MemoryUse memory_use(int device) {
    return machine().memory_use(device);
}
void reset_peak(int device) {
    machine().reset_peak(device);
}
void count_peers(std::size_t peers) {
    machine().count_peers(peers);
}

} // namespace lockstep::sim
