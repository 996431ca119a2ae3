#include "h5/appender.hpp"

#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include "space.hpp"
#include "types.hpp"

namespace lockstep::h5 {

namespace {

Error misused(std::string const& dataset, std::string const& why) {
    return {ExitCode::software, {dataset, why, "This is a bug; please report it"}};
}

} // namespace

Appender::Appender(File const& file, std::string const& path, Type type)
    : file_(file), name_(file.named(path)), type_(type),
      dataset_(file.open_dataset(path, Doing::writing)), space_(space_of_dataset(dataset_)),
      shape_(shape_of(space_)) {
    if (shape_.empty()) {
        throw misused(name_, "it has no rows");
    }
    row_bytes_ = elements({shape_.begin() + 1, shape_.end()}) * size_of(type);
}

void Appender::append(std::span<std::byte const> rows) {
    if (rows.empty()) {
        return;
    }
    auto const count = row_bytes_ == 0 ? 0 : rows.size() / row_bytes_;
    if (count * row_bytes_ != rows.size() || count > shape_.front() - written_) {
        throw misused(name_, concat(rows.size(), " bytes for rows of ", row_bytes_,
                                    " bytes each, after row ", written_, " of ", shape_.front()));
    }
    select_rows(space_, written_, count);
    auto selected = shape_;
    selected.front() = count;
    check(H5Dwrite(dataset_.id(), stored_type(type_).id(), space_of(selected).id(), space_.id(),
                   H5P_DEFAULT, rows.data()),
          Doing::writing, concat("H5Dwrite of ", name_));
    written_ += count;
    file_.require_written();
}

void Appender::close() {
    if (written_ != shape_.front() && row_bytes_ != 0) {
        throw misused(
            name_, concat(written_, " of ", shape_.front(), " rows were written before the end"));
    }
    dataset_.close(name_);
    file_.require_written();
}

} // namespace lockstep::h5
