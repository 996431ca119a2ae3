#include "step/replica_state.hpp"

#include "arena/arena.hpp"
#include "arena/buffers.hpp"
#include "base/text.hpp"
#include "checkpoint/adapter.hpp"
#include "checkpoint/model_file.hpp"
#include "checkpoint/weights.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"
#include "step/merged_parameters.hpp"

#include <map>

namespace lockstep::train {

namespace {

constexpr char const* parameters_name = "state/parameters";
constexpr char const* floats_name = checkpoint::real_buffers;
constexpr char const* integers_name = "state/buffers_i64";
constexpr char const* kept_floats_name = "state/replicas/buffers_f32";
constexpr char const* kept_integers_name = "state/replicas/buffers_i64";

std::string state_name(std::string const& state) {
    return "state/" + state;
}

std::span<std::byte const> bytes_of(torch::Tensor const& tensor) {
    return {static_cast<std::byte const*>(tensor.const_data_ptr()), tensor.nbytes()};
}

std::span<std::byte> writable_bytes_of(torch::Tensor const& tensor) {
    return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

h5::Type type_of(torch::Tensor const& tensor) {
    if (tensor.scalar_type() == torch::kBool) {
        return h5::Type::u8;
    }
    return tensor.scalar_type() == torch::kInt64 ? h5::Type::i64 : h5::Type::f32;
}

} // namespace

ReplicaState::ReplicaState(Contents parts) : parts_(std::move(parts)) {}

/// Where a range of the arena begins in the optimizer's state, which holds its ranges one after the
/// other.
std::int64_t ReplicaState::place_in_state(Range range) const {
    std::int64_t before = 0;
    for (auto const& owned : parts_.optimizer.owned()) {
        if (owned.first <= range.first && range.last <= owned.last) {
            return before + range.first - owned.first;
        }
        before += owned.count();
    }
    throw Error(
        ExitCode::software,
        {"a shard of the optimizer's state is not on the rank that should save or restore it",
         "this is a bug", "Please report it"});
}

torch::Tensor ReplicaState::values_of(comm::Carried const& carried) const {
    return borrowed(carried.values, carried.count, parts_.arena.parameters().device());
}

checkpoint::Snapshot ReplicaState::snapshot() {
    checkpoint::Snapshot snapshot;
    on_host_.clear();
    auto const size = static_cast<std::uint64_t>(parts_.layout.size);
    auto const add_array = [&](std::string const& name, h5::Type type, auto const& shard_of) {
        snapshot.arrays.push_back({name, type, size});
        auto& parts = snapshot.parts.emplace_back();
        for (auto const& range : parts_.written) {
            on_host_.push_back(shard_of(range).cpu());
            parts.push_back({static_cast<std::uint64_t>(range.first), bytes_of(on_host_.back())});
        }
    };
    add_array(parameters_name, h5::Type::f32, [&](Range range) {
        return parts_.arena.parameters().narrow(0, range.first, range.count());
    });
    for (std::size_t i = 0; i < parts_.optimizer.state_names().size(); ++i) {
        add_array(state_name(parts_.optimizer.state_names()[i]), h5::Type::f32, [&](Range range) {
            return parts_.optimizer.state(i).narrow(0, place_in_state(range), range.count());
        });
    }
    for (auto const& [name, values] : parts_.more) {
        add_array(state_name(name), type_of(values), [&, &shard = values](Range range) {
            return shard.narrow(0, place_in_state(range), range.count());
        });
    }
    // Buffers are small. Replica 0's are the same everywhere: rank 0 writes them.
    auto const add_buffers = [&](std::string const& name, torch::Tensor const& values,
                                 std::int64_t replicas) -> std::vector<h5::Part>* {
        auto const elements = static_cast<std::uint64_t>(values.numel() * replicas);
        if (elements == 0) {
            return nullptr;
        }
        snapshot.arrays.push_back({name, type_of(values), elements});
        return &snapshot.parts.emplace_back();
    };
    auto const add_kind = [&](char const* shared, char const* kept, torch::Tensor Buffers::*kind) {
        auto const& values = parts_.buffers.*kind;
        auto* const parts = add_buffers(shared, values, 1);
        if (parts != nullptr && parts_.writes_buffers) {
            parts->push_back({0, bytes_of(values)});
        }
        // Whether replicas keep their own is the same on all ranks.
        auto* const own =
            parts_.kept.empty() ? nullptr : add_buffers(kept, values, parts_.replicas);
        for (std::size_t i = 0; own != nullptr && i < parts_.kept.size(); ++i) {
            auto const replica = static_cast<std::uint64_t>(parts_.first_replica) + i;
            own->push_back({replica * static_cast<std::uint64_t>(values.numel()),
                            bytes_of(parts_.kept[i].*kind)});
        }
    };
    add_kind(floats_name, kept_floats_name, &Buffers::floats);
    add_kind(integers_name, kept_integers_name, &Buffers::integers);
    for (auto const& carried : parts_.carried) {
        snapshot.arrays.push_back({state_name(carried.name), h5::Type::f32,
                                   static_cast<std::uint64_t>(carried.elements)});
        snapshot.parts.emplace_back();
        if (carried.is_written_here) {
            on_host_.push_back(values_of(carried).cpu());
            snapshot.parts.back().push_back(
                {static_cast<std::uint64_t>(carried.first), bytes_of(on_host_.back())});
        }
    }

    snapshot.views = parts_.layout.views("model", parameters_name);
    auto const buffers = parts_.buffers.views(parts_.model, "model", floats_name, integers_name);
    snapshot.views.insert(snapshot.views.end(), buffers.begin(), buffers.end());
    for (auto const& state : parts_.optimizer.state_names()) {
        auto const views = parts_.layout.views("optimizer/" + state, state_name(state));
        snapshot.views.insert(snapshot.views.end(), views.begin(), views.end());
    }
    for (auto const& [name, values] : parts_.more) {
        auto const views = parts_.layout.views(name, state_name(name));
        snapshot.views.insert(snapshot.views.end(), views.begin(), views.end());
    }
    return snapshot;
}

/// Arrays may be as long as those of another model: what tells them apart is their parts.
void ReplicaState::require_same_model(checkpoint::Reader const& reader) const {
    std::map<std::string, h5::Shape> there;
    for (auto const& view : reader.views()) {
        if (view.source == parameters_name) {
            there[view.path] = view.shape;
        }
    }
    auto const throw_other = [&](std::string const& path, std::string const& why) {
        throw Error(ExitCode::usage,
                    {concat("cannot restore ", path, " from ", reader.path().string()), why,
                     "Resume with the model that was trained, or start over with "
                     "--checkpoint.resume none"});
    };
    for (auto const& view : parts_.layout.views("model", parameters_name)) {
        auto const found = there.find(view.path);
        if (found == there.end()) {
            throw_other(view.path, "the deck's model has this parameter, but the file does not");
        }
        if (found->second != view.shape) {
            throw_other(view.path,
                        concat("its shape is ", h5::shape_text(found->second),
                               ", but in the deck's model it is ", h5::shape_text(view.shape)));
        }
        there.erase(found);
    }
    if (!there.empty()) {
        throw_other(there.begin()->first, "the deck's model has no such parameter");
    }
}

std::vector<std::string> ReplicaState::restore(checkpoint::Reader const& reader,
                                               bool shares_state) {
    require_same_model(reader);
    torch::NoGradGuard const no_grad;
    auto const fill = [&](std::string const& name, std::int64_t first, torch::Tensor const& into,
                          std::int64_t whole) {
        if (whole == 0) {
            return;
        }
        if (reader.array(name).elements != static_cast<std::uint64_t>(whole)) {
            throw Error(ExitCode::data,
                        {concat("cannot restore ", name, " from ", reader.path().string()),
                         concat("the array has ", reader.array(name).elements,
                                " elements, but the deck's model has ", whole),
                         "Resume with the model that was trained, or start over with "
                         "--checkpoint.resume none"});
        }
        auto const host = torch::empty(into.sizes(), into.options().device(torch::kCPU));
        reader.read(name, static_cast<std::uint64_t>(first), writable_bytes_of(host));
        into.copy_(host);
    };
    auto const size = parts_.layout.size;
    // All of the parameters on every rank: those of a host may be one array, and get the same
    // bytes.
    auto const ranges =
        parts_.has_all_parameters ? std::vector<Range>{{0, size}} : parts_.written;
    for (auto const& range : ranges) {
        fill(parameters_name, range.first,
             parts_.arena.parameters().narrow(0, range.first, range.count()), size);
    }
    std::vector<std::string> fresh;
    for (std::size_t i = 0; i < parts_.optimizer.state_names().size(); ++i) {
        auto const& name = parts_.optimizer.state_names()[i];
        bool const is_copy = parts_.optimizer.copies_weights(i);
        if (!reader.has(state_name(name)) || !(shares_state || is_copy)) {
            fresh.push_back(name);
            if (is_copy) {
                parts_.optimizer.begin_copy(i, parts_.arena.parameters());
            }
            continue;
        }
        for (auto const& range : parts_.optimizer.owned()) {
            fill(state_name(name), range.first,
                 parts_.optimizer.state(i).narrow(0, place_in_state(range), range.count()), size);
        }
    }
    for (auto const& [name, values] : parts_.more) {
        if (!reader.has(state_name(name))) {
            fresh.push_back(name);
            continue;
        }
        for (auto const& range : parts_.optimizer.owned()) {
            fill(state_name(name), range.first,
                 values.narrow(0, place_in_state(range), range.count()), size);
        }
    }
    for (auto const& carried : parts_.carried) {
        auto const name = state_name(carried.name);
        if (reader.has(name) &&
            reader.array(name).elements == static_cast<std::uint64_t>(carried.elements)) {
            fill(name, carried.first, values_of(carried), carried.elements);
        } else {
            fresh.push_back(carried.name);
        }
    }
    fill(floats_name, 0, parts_.buffers.floats, parts_.buffers.floats.numel());
    fill(integers_name, 0, parts_.buffers.integers, parts_.buffers.integers.numel());
    // A forced resume may come from replicas that kept none, or from another number of them: then
    // all begin with replica 0's.
    auto const fill_kept = [&](char const* name, torch::Tensor Buffers::*kind) {
        auto const count = (parts_.buffers.*kind).numel();
        auto const whole = count * parts_.replicas;
        bool const saved =
            reader.has(name) && reader.array(name).elements == static_cast<std::uint64_t>(whole);
        for (std::size_t i = 0; i < parts_.kept.size(); ++i) {
            auto const& own = parts_.kept[i].*kind;
            if (saved) {
                fill(name, (parts_.first_replica + static_cast<std::int64_t>(i)) * count, own,
                     whole);
            } else {
                own.copy_(parts_.buffers.*kind);
            }
        }
    };
    fill_kept(kept_floats_name, &Buffers::floats);
    fill_kept(kept_integers_name, &Buffers::integers);
    parts_.buffers.restore_into(parts_.model);
    parts_.arena.refresh();
    return fresh;
}

void ReplicaState::write_model(std::filesystem::path const& path,
                               checkpoint::Record const& record) {
    std::vector<checkpoint::NamedArray> arrays;
    std::vector<std::string> buffers;
    auto const parameters = merged_parameters(parts_.layout, parts_.arena, record);
    for (auto const& view : parts_.layout.views("model", "")) {
        if (is_of_adapter(view.path, '/')) {
            continue;
        }
        auto const values = parameters.narrow(0, static_cast<std::int64_t>(view.first),
                                              static_cast<std::int64_t>(h5::elements(view.shape)));
        arrays.push_back({view.path, h5::Type::f32, view.shape, bytes_of(values)});
    }
    for (auto const& view :
         parts_.buffers.views(parts_.model, "model", floats_name, integers_name)) {
        auto const& flat =
            view.source == floats_name ? parts_.buffers.floats : parts_.buffers.integers;
        auto const values = flat.narrow(0, static_cast<std::int64_t>(view.first),
                                        static_cast<std::int64_t>(h5::elements(view.shape)));
        arrays.push_back({view.path, type_of(flat), view.shape, bytes_of(values)});
        if (view.source == floats_name) {
            buffers.push_back(view.path);
        }
    }
    auto noted = record;
    if (!buffers.empty()) {
        noted.notes[checkpoint::buffers_note] = joined(buffers, "\n");
    }
    checkpoint::write_model(path, arrays, noted);
}

} // namespace lockstep::train
