#include "step/replica_arrays.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::train {

namespace {

std::string path_of(ReplicaArray const& array) {
    return "state/replicas/" + array.name;
}

} // namespace

void add_replica_arrays(checkpoint::Snapshot& snapshot, std::vector<ReplicaArray> const& arrays,
                        comm::TreeNode own, std::int64_t replicas) {
    for (auto const& array : arrays) {
        snapshot.arrays.push_back(
            {path_of(array), array.type, array.elements * static_cast<std::uint64_t>(replicas)});
        auto& parts = snapshot.parts.emplace_back();
        for (std::size_t i = 0; i < array.replicas.size(); ++i) {
            parts.push_back(
                {(static_cast<std::uint64_t>(own.first) + i) * array.elements, array.replicas[i]});
        }
    }
}

void restore_replica_arrays(checkpoint::Reader const& reader,
                            std::vector<ReplicaArray> const& arrays, comm::TreeNode own,
                            std::int64_t replicas) {
    for (auto const& array : arrays) {
        auto const name = path_of(array);
        auto const whole = array.elements * static_cast<std::uint64_t>(replicas);
        if (!reader.has(name) || reader.array(name).elements != whole) {
            throw Error(ExitCode::data,
                        {concat("cannot restore ", name, " from ", reader.path().string()),
                         reader.has(name)
                             ? concat("the array's size does not fit the ",
                                      amount_of(replicas, "replica"), " of this deck's task")
                             : std::string("the checkpoint lacks this array"),
                         "Resume with the run.replicas, task and policy that wrote the checkpoint, "
                         "or start over with --checkpoint.resume none"});
        }
        for (std::size_t i = 0; i < array.replicas.size(); ++i) {
            reader.read(name, (static_cast<std::uint64_t>(own.first) + i) * array.elements,
                        array.replicas[i]);
        }
    }
}

} // namespace lockstep::train
