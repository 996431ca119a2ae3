#include "base/text.hpp"

#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include "property_list.hpp"
#include "types.hpp"

namespace lockstep::h5 {

void File::write_text(std::string const& path, std::string const& text) {
    create_groups_above(path);
    auto const type = text_type(text.size());
    Handle const space{check(H5Screate(H5S_SCALAR), Doing::planning, "H5Screate"), H5Sclose};
    Handle dataset{check(H5Dcreate2(file_.id(), path.c_str(), type.id(), space.id(), H5P_DEFAULT,
                                    dataset_creation().id(), H5P_DEFAULT),
                         Doing::writing, concat("H5Dcreate2 of ", named(path))),
                   H5Dclose};
    // An empty text is stored as one NUL, which c_str() has.
    check(H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.c_str()),
          Doing::writing, concat("H5Dwrite of ", named(path)));
    dataset.close(named(path));
}

std::string File::read_text(std::string const& path) const {
    auto const dataset = open_to_read(path);
    Handle const type{check(H5Dget_type(dataset.id()), Doing::reading, "H5Dget_type"), H5Tclose};
    Handle const space{check(H5Dget_space(dataset.id()), Doing::reading, "H5Dget_space"), H5Sclose};
    if (H5Tget_class(type.id()) != H5T_STRING || H5Tis_variable_str(type.id()) > 0 ||
        H5Sget_simple_extent_npoints(space.id()) != 1) {
        throw Error(ExitCode::data,
                    {concat(path, " in ", path_.string(), " is not text"),
                     "the program expected a single string of fixed length",
                     "Another program wrote this file, so write the file again with lockstep"});
    }
    std::string text(H5Tget_size(type.id()), '\0');
    check(H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()),
          Doing::reading, concat("H5Dread of ", named(path)));
    text.erase(text.find_last_not_of('\0') + 1);
    return text;
}

} // namespace lockstep::h5
