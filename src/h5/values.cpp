#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "h5/refused_writes.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include <algorithm>

#include "conversion.hpp"
#include "property_list.hpp"
#include "space.hpp"
#include "types.hpp"

namespace lockstep::h5 {

namespace {

// A collective call of more than 2 GiB on a rank crashes (Open MPI 4.1.4, vulcan, 3 ranks and
// more), so larger parts go in calls of this size.
constexpr std::uint64_t call_bytes = std::uint64_t{256} << 20;

std::uint64_t elements_of(Handle const& dataset) {
    return elements(shape_of(space_of_dataset(dataset)));
}

/// Before HDF5 touches the values, of which it knows no length.
void require_fit(std::string const& dataset, std::uint64_t elements, std::uint64_t given) {
    if (elements != given) {
        throw Error(
            ExitCode::data,
            {concat(dataset, " has the wrong size"),
             concat("the dataset has ", elements, " elements, but ", given, " were expected"),
             "This dataset does not match the other datasets in the file. Copy the file again from "
             "its source, or create the file again"});
    }
}

void require_within(std::string const& dataset, std::uint64_t extent, std::uint64_t first,
                    std::uint64_t count) {
    if (first > extent || count > extent - first) {
        throw Error(ExitCode::data, {concat(dataset, " has only ", amount_of(extent, "row")),
                                     concat("the program needs ", amount_of(count, "row"),
                                            " from row ", first, " on"),
                                     "The file is damaged or has another layout. Copy the file "
                                     "again from its source, or create the file again"});
    }
}

/// Reads what is selected. A view converts, too: from the types of its sources to its own.
///
/// Throws  Error 65 for a value that does not fit one of these types
void read_fitting(std::string const& dataset, Handle const& from, Type type, Id memory_space,
                  Id space, std::byte* into) {
    Conversion const conversion;
    auto const memory_type = stored_type(type); // whose end would take the reason off the stack
    auto const read =
        H5Dread(from.id(), memory_type.id(), memory_space, space, conversion.list(), into);
    conversion.require_fit(dataset, type);
    check(read, Doing::reading, concat("H5Dread of ", dataset));
}

} // namespace

void File::write(std::string const& path, Type type, std::span<std::byte const> values) {
    auto dataset = open_dataset(path, Doing::writing);
    require_fit(named(path), elements_of(dataset), values.size() / size_of(type));
    check(H5Dwrite(dataset.id(), stored_type(type).id(), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                   values.data()),
          Doing::writing, concat("H5Dwrite of ", named(path)));
    dataset.close(named(path));
    require_written();
}

void File::read(std::string const& path, Type type, std::span<std::byte> values) const {
    auto const dataset = open_to_read(path);
    require_fit(named(path), elements_of(dataset), values.size() / size_of(type));
    read_fitting(named(path), dataset, type, H5S_ALL, H5S_ALL, values.data());
}

std::uint64_t File::calls_for(std::uint64_t bytes) {
    return (bytes + call_bytes - 1) / call_bytes;
}

Transfer File::write_parts(std::string const& path, Type type, std::span<Part const> parts,
                           std::uint64_t calls) {
    bool const together = access_ == Access::together;
    RefusedWrites const refused(*disk_);
    auto dataset = open_dataset(path, Doing::writing);
    auto const extent = elements_of(dataset);
    auto const memory_type = stored_type(type);
    auto const transfer = property_list(H5P_DATASET_XFER);
    if (together) {
        check(H5Pset_dxpl_mpio(transfer.id(), H5FD_MPIO_COLLECTIVE), Doing::planning,
              "H5Pset_dxpl_mpio");
        // Still collective for HDF5, but each rank writes its own part: as fast, and free of the
        // aggregators' faults with large parts and full disks (Open MPI 4.1.4).
        check(H5Pset_dxpl_mpio_collective_opt(transfer.id(), H5FD_MPIO_INDIVIDUAL_IO),
              Doing::planning, "H5Pset_dxpl_mpio_collective_opt");
    }
    Transfer result{together, 0};
    std::uint64_t const unit = size_of(type);
    auto const write = [&](Part const& part) {
        auto const count = part.bytes.size() / unit;
        require_within(named(path), extent, part.first, count);
        auto const file_space = space_of_dataset(dataset);
        select_rows(file_space, part.first, count);
        auto const memory_space = space_of({std::max<std::uint64_t>(count, 1)});
        select_rows(memory_space, 0, count);
        check(H5Dwrite(dataset.id(), memory_type.id(), memory_space.id(), file_space.id(),
                       transfer.id(), part.bytes.data()),
              Doing::writing, concat("H5Dwrite of ", named(path)));
        if (together) {
            std::uint32_t local = 0;
            std::uint32_t global = 0;
            check(H5Pget_mpio_no_collective_cause(transfer.id(), &local, &global), Doing::planning,
                  "H5Pget_mpio_no_collective_cause");
            result.cause |= local | global;
        }
    };
    std::uint64_t done = 0;
    for (auto const& part : parts) {
        for (std::uint64_t begin = 0; begin < part.bytes.size(); begin += call_bytes, ++done) {
            auto const length = std::min<std::uint64_t>(call_bytes, part.bytes.size() - begin);
            write({part.first + begin / unit, part.bytes.subspan(begin, length)});
        }
    }
    for (; done < calls; ++done) {
        write({}); // the others still have something
    }
    dataset.close(named(path));
    require_written();
    result.collective = together && result.cause == H5D_MPIO_COLLECTIVE;
    return result;
}

void File::read_part(std::string const& path, Type type, std::uint64_t first,
                     std::span<std::byte> bytes) const {
    auto const dataset = open_to_read(path);
    std::uint64_t const unit = size_of(type);
    require_within(named(path), elements_of(dataset), first, bytes.size() / unit);
    for (std::uint64_t begin = 0; begin < bytes.size(); begin += call_bytes) {
        std::uint64_t const length = std::min<std::uint64_t>(call_bytes, bytes.size() - begin);
        auto const file_space = space_of_dataset(dataset);
        select_rows(file_space, first + begin / unit, length / unit);
        auto const memory_space = space_of({length / unit});
        read_fitting(named(path), dataset, type, memory_space.id(), file_space.id(),
                     bytes.data() + begin);
    }
}

void File::read_rows(std::string const& path, Type type, Rows rows,
                     std::span<std::byte> values) const {
    auto const dataset = open_to_read(path);
    auto const space = space_of_dataset(dataset);
    auto shape = shape_of(space);
    require_within(named(path), shape.empty() ? 0 : shape.front(), rows.first, rows.count);
    if (rows.count == 0) {
        return;
    }
    select_rows(space, rows.first, rows.count);
    shape.front() = rows.count;
    require_fit(named(path), elements(shape), values.size() / size_of(type));
    auto const memory_space = space_of(shape); // whose end would take the reason off the stack
    read_fitting(named(path), dataset, type, memory_space.id(), space.id(), values.data());
}

} // namespace lockstep::h5
