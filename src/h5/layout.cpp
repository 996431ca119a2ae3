#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"

#include <hdf5.h>

#include <algorithm>

#include "property_list.hpp"
#include "space.hpp"
#include "types.hpp"

namespace lockstep::h5 {

namespace {

/// One block, claimed at once and never filled.
void lay_contiguous(Handle const& creation) {
    check(H5Pset_layout(creation.id(), H5D_CONTIGUOUS), Doing::planning, "H5Pset_layout");
    check(H5Pset_alloc_time(creation.id(), H5D_ALLOC_TIME_EARLY), Doing::planning,
          "H5Pset_alloc_time");
    check(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER), Doing::planning,
          "H5Pset_fill_time");
}

void lay_in_chunks(Handle const& creation, Shape const& shape, Layout const& layout) {
    std::vector<hsize_t> chunk(shape.begin(), shape.end());
    chunk.at(0) = std::min<std::uint64_t>(layout.chunk_rows, shape.at(0));
    check(H5Pset_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data()),
          Doing::planning, "H5Pset_chunk");
    if (layout.deflate > 0) {
        check(H5Pset_shuffle(creation.id()), Doing::planning, "H5Pset_shuffle");
        check(H5Pset_deflate(creation.id(), static_cast<unsigned>(layout.deflate)), Doing::planning,
              "H5Pset_deflate");
    }
    if (layout.checksums) {
        check(H5Pset_fletcher32(creation.id()), Doing::planning, "H5Pset_fletcher32");
    }
}

} // namespace

void File::create_groups_above(std::string const& path) {
    for (auto end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
        if (auto const group = path.substr(0, end); !exists(group)) {
            create_group(group);
        }
    }
}

void File::create_group(std::string const& path) {
    create_groups_above(path);
    auto const creation = property_list(H5P_GROUP_CREATE);
    check(H5Pset_obj_track_times(creation.id(), false), Doing::planning, "H5Pset_obj_track_times");
    Handle group{
        check(H5Gcreate2(file_.id(), path.c_str(), H5P_DEFAULT, creation.id(), H5P_DEFAULT),
              Doing::writing, concat("H5Gcreate2 of ", path, " in ", path_.string())),
        H5Gclose};
    group.close(concat("group ", path, " of ", path_.string()));
}

void File::make_dataset(std::string const& path, Type type, Shape const& shape, Handle const& how) {
    create_groups_above(path);
    Handle dataset{check(H5Dcreate2(file_.id(), path.c_str(), stored_type(type).id(),
                                    space_of(shape).id(), H5P_DEFAULT, how.id(), H5P_DEFAULT),
                         Doing::writing, concat("H5Dcreate2 of ", named(path))),
                   H5Dclose};
    dataset.close(named(path));
}

void File::create_dataset(std::string const& path, Type type, Shape const& shape,
                          Layout const& layout) {
    auto const creation = dataset_creation();
    if (layout.chunk_rows > 0) {
        lay_in_chunks(creation, shape, layout);
    } else {
        lay_contiguous(creation);
    }
    make_dataset(path, type, shape, creation);
}

void File::create_view(View const& view, Type type) {
    auto const source = open_dataset(view.source, Doing::writing);
    auto const source_space = space_of_dataset(source);
    select_rows(source_space, view.first, elements(view.shape));
    auto const space = space_of(view.shape);
    auto const creation = dataset_creation();
    check(H5Pset_virtual(creation.id(), space.id(), ".", view.source.c_str(), source_space.id()),
          Doing::planning, "H5Pset_virtual");
    make_dataset(view.path, type, view.shape, creation);
}

} // namespace lockstep::h5
