#include "base/text.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include <algorithm>

#include "types.hpp"

namespace lockstep::h5 {

namespace {

Handle space_of_count(std::optional<std::size_t> count) {
    if (!count) {
        return {check(H5Screate(H5S_SCALAR), Doing::planning, "H5Screate"), H5Sclose};
    }
    hsize_t const extent = *count;
    return {check(H5Screate_simple(1, &extent, nullptr), Doing::planning, "H5Screate_simple"),
            H5Sclose};
}

/// An attribute that cannot be looked for is an error: without its mean, data would be other data.
bool has_attribute(Id file, std::string const& path, std::string const& name, Doing doing) {
    return check(H5Aexists_by_name(file, path.c_str(), name.c_str(), H5P_DEFAULT), doing,
                 "H5Aexists_by_name of " + name) > 0;
}

void write_attribute(Id file, std::string const& path, std::string const& name, Id stored,
                     Handle const& space, std::span<std::byte const> values) {
    auto const count = check(H5Sget_simple_extent_npoints(space.id()), Doing::planning,
                             "H5Sget_simple_extent_npoints");
    if (values.size() != static_cast<std::uint64_t>(count) * H5Tget_size(stored)) {
        throw Error(ExitCode::software,
                    {concat("cannot write attribute ", name, " of ", path),
                     concat("its ", count, " values have ", values.size(), " bytes"),
                     "This is a bug; please report it"});
    }
    if (has_attribute(file, path, name, Doing::writing)) {
        check(H5Adelete_by_name(file, path.c_str(), name.c_str(), H5P_DEFAULT), Doing::writing,
              "H5Adelete_by_name");
    }
    Handle attribute{check(H5Acreate_by_name(file, path.c_str(), name.c_str(), stored, space.id(),
                                             H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                           Doing::writing, "H5Acreate_by_name of " + name),
                     H5Aclose};
    check(H5Awrite(attribute.id(), stored, values.data()), Doing::writing, "H5Awrite of " + name);
    attribute.close("attribute " + name);
}

std::optional<Handle> find_attribute(Id file, std::string const& path, std::string const& name) {
    if (!has_attribute(file, path, name, Doing::reading)) {
        return std::nullopt;
    }
    return Handle{check(H5Aopen_by_name(file, path.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
                        Doing::reading, "H5Aopen_by_name of " + name),
                  H5Aclose};
}

std::size_t count_of(Handle const& attribute) {
    Handle const space{check(H5Aget_space(attribute.id()), Doing::reading, "H5Aget_space"),
                       H5Sclose};
    return static_cast<std::size_t>(check(H5Sget_simple_extent_npoints(space.id()), Doing::reading,
                                          "H5Sget_simple_extent_npoints"));
}

herr_t collect_attribute_name(hid_t, char const* name, H5A_info_t const*, void* into) {
    static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    return 0;
}

bool is_of_class(Handle const& attribute, std::initializer_list<H5T_class_t> classes) {
    Handle const type{check(H5Aget_type(attribute.id()), Doing::reading, "H5Aget_type"), H5Tclose};
    return std::find(classes.begin(), classes.end(), H5Tget_class(type.id())) != classes.end();
}

} // namespace

void File::set_attribute(std::string const& path, std::string const& name,
                         std::string const& text) {
    std::string const padded = text.empty() ? std::string(1, '\0') : text;
    write_attribute(file_.id(), path, name, text_type(padded.size()).id(),
                    space_of_count(std::nullopt), std::as_bytes(std::span(padded)));
}

void File::set_attribute(std::string const& path, std::string const& name, std::int64_t value) {
    write_attribute(file_.id(), path, name, H5T_STD_I64LE, space_of_count(std::nullopt),
                    std::as_bytes(std::span(&value, 1)));
}

void File::set_attribute(std::string const& path, std::string const& name,
                         std::vector<double> const& values) {
    write_attribute(file_.id(), path, name, H5T_IEEE_F64LE, space_of_count(values.size()),
                    std::as_bytes(std::span(values)));
}

void File::set_attribute(std::string const& path, std::string const& name,
                         std::vector<std::string> const& texts) {
    std::size_t longest = 1;
    for (auto const& text : texts) {
        longest = std::max(longest, text.size());
    }
    std::string packed(longest * texts.size(), '\0');
    for (std::size_t i = 0; i < texts.size(); ++i) {
        std::copy(texts[i].begin(), texts[i].end(),
                  packed.begin() + static_cast<std::ptrdiff_t>(i * longest));
    }
    write_attribute(file_.id(), path, name, text_type(longest).id(), space_of_count(texts.size()),
                    std::as_bytes(std::span(packed)));
}

std::vector<std::string> File::attribute_names(std::string const& path) const {
    std::vector<std::string> names;
    check(H5Aiterate_by_name(file_.id(), path.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
                             collect_attribute_name, &names, H5P_DEFAULT),
          Doing::reading, "H5Aiterate_by_name");
    return names;
}

std::optional<std::vector<std::string>> File::texts_attribute(std::string const& path,
                                                              std::string const& name) const {
    auto const attribute = find_attribute(file_.id(), path, name);
    if (!attribute || !is_of_class(*attribute, {H5T_STRING})) {
        return std::nullopt;
    }
    Handle const stored{check(H5Aget_type(attribute->id()), Doing::reading, "H5Aget_type"),
                        H5Tclose};
    auto const count = count_of(*attribute);
    std::vector<std::string> texts;
    if (H5Tis_variable_str(stored.id()) > 0) {
        // As h5py writes them.
        std::vector<char*> raw(count, nullptr);
        check(H5Aread(attribute->id(), stored.id(), static_cast<void*>(raw.data())), Doing::reading,
              "H5Aread");
        for (char* const text : raw) {
            texts.emplace_back(text == nullptr ? "" : text);
            H5free_memory(text);
        }
        return texts;
    }
    auto const length = H5Tget_size(stored.id());
    std::string packed(length * count, '\0');
    check(H5Aread(attribute->id(), stored.id(), packed.data()), Doing::reading, "H5Aread");
    for (std::size_t i = 0; i < count; ++i) {
        auto text = packed.substr(i * length, length);
        text.erase(std::find(text.begin(), text.end(), '\0'), text.end());
        texts.push_back(std::move(text));
    }
    return texts;
}

std::optional<std::string> File::text_attribute(std::string const& path,
                                                std::string const& name) const {
    auto texts = texts_attribute(path, name);
    if (!texts || texts->empty()) {
        return std::nullopt;
    }
    return std::move(texts->front());
}

std::optional<std::int64_t> File::integer_attribute(std::string const& path,
                                                    std::string const& name) const {
    auto const attribute = find_attribute(file_.id(), path, name);
    if (!attribute || !is_of_class(*attribute, {H5T_INTEGER}) || count_of(*attribute) != 1) {
        return std::nullopt;
    }
    std::int64_t value = 0;
    check(H5Aread(attribute->id(), H5T_NATIVE_INT64, &value), Doing::reading, "H5Aread of " + name);
    return value;
}

std::optional<std::vector<double>> File::number_attribute(std::string const& path,
                                                          std::string const& name) const {
    auto const attribute = find_attribute(file_.id(), path, name);
    if (!attribute || !is_of_class(*attribute, {H5T_INTEGER, H5T_FLOAT})) {
        return std::nullopt;
    }
    std::vector<double> values(count_of(*attribute));
    check(H5Aread(attribute->id(), H5T_NATIVE_DOUBLE, values.data()), Doing::reading,
          "H5Aread of " + name);
    return values;
}

} // namespace lockstep::h5
