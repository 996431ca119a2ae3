#include "view.hpp"

#include <hdf5.h>

#include <algorithm>
#include <functional>

#include "fault.hpp"
#include "space.hpp"

namespace lockstep::h5 {

namespace {

/// A name of a virtual dataset's source, that of block 0 where each block has one.
template <class Get>
std::string source_name(Get get, Id creation, std::size_t which) {
    auto const length = check(get(creation, which, nullptr, 0), Doing::reading, "H5Pget_virtual_…");
    std::string name(static_cast<std::size_t>(length) + 1, '\0');
    check(get(creation, which, name.data(), name.size()), Doing::reading, "H5Pget_virtual_…");
    name.pop_back();
    std::string first;
    for (std::size_t i = 0; i < name.size(); ++i) {
        bool const escaped = name[i] == '%' && i + 1 < name.size();
        first += !escaped ? name[i] : name[++i] == 'b' ? '0' : name[i];
    }
    return first;
}

} // namespace

bool is_virtual(Handle const& creation) {
    return H5Pget_layout(creation.id()) == H5D_VIRTUAL;
}

std::vector<VirtualSource> virtual_sources(Id creation) {
    std::size_t count = 0;
    check(H5Pget_virtual_count(creation, &count), Doing::reading, "H5Pget_virtual_count");
    std::vector<VirtualSource> sources;
    for (std::size_t i = 0; i < count; ++i) {
        sources.push_back({source_name(H5Pget_virtual_filename, creation, i),
                           source_name(H5Pget_virtual_dsetname, creation, i), i});
    }
    return sources;
}

bool reaches(Id creation, std::size_t which, Handle const& source) {
    Handle const wanted{
        check(H5Pget_virtual_srcspace(creation, which), Doing::reading, "H5Pget_virtual_srcspace"),
        H5Sclose};
    Handle const there{check(H5Dget_space(source.id()), Doing::reading, "H5Dget_space"), H5Sclose};
    auto const extents = shape_of(there);
    if (H5Sget_select_type(wanted.id()) == H5S_SEL_ALL) { // whatever is there
        Handle const shown{
            check(H5Pget_virtual_vspace(creation, which), Doing::reading, "H5Pget_virtual_vspace"),
            H5Sclose};
        auto const count = H5Sget_select_npoints(shown.id());
        return count < 0 || count == H5Sget_simple_extent_npoints(there.id());
    }
    std::vector<hsize_t> first(H5S_MAX_RANK);
    std::vector<hsize_t> last(H5S_MAX_RANK);
    if (H5Sget_select_bounds(wanted.id(), first.data(), last.data()) < 0) {
        static_cast<void>(take_fault());
        return true; // as many as there are
    }
    return std::equal(extents.begin(), extents.end(), last.begin(), std::greater<>());
}

std::int64_t unmapped(Id creation, Handle const& dataset) {
    std::size_t count = 0;
    check(H5Pget_virtual_count(creation, &count), Doing::reading, "H5Pget_virtual_count");
    Handle const space{check(H5Dget_space(dataset.id()), Doing::reading, "H5Dget_space"), H5Sclose};
    auto missing = H5Sget_simple_extent_npoints(space.id());
    for (std::size_t i = 0; i < count; ++i) {
        Handle const shown{
            check(H5Pget_virtual_vspace(creation, i), Doing::reading, "H5Pget_virtual_vspace"),
            H5Sclose};
        auto const points = H5Sget_select_npoints(shown.id());
        if (points < 0) {
            return 0;
        }
        missing -= points;
    }
    return std::max<std::int64_t>(missing, 0);
}

} // namespace lockstep::h5
