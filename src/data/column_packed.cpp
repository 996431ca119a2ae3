#include "lockstep/base/error.hpp"

#include <utility>

#include "column.hpp"

namespace lockstep::data {

namespace {

template <class T>
std::vector<T> vector_of(std::span<T const> values) {
    return {values.begin(), values.end()};
}

void pack_form(Packer& packer, h5::Storage const& form) {
    packer.put(form.type);
    packer.put(form.big_endian);
    packer.put_all(std::span(std::as_const(form.shape)));
    packer.put_all(std::span(std::as_const(form.chunk)));
    packer.put_all(std::span(std::as_const(form.filters)));
    packer.put(form.partial_chunks_filtered);
    packer.put_all(std::span(std::as_const(form.fill)));
}

h5::Storage unpacked_form(Unpacker& packed) {
    h5::Storage form;
    form.type = packed.get<h5::Type>();
    form.big_endian = packed.get<bool>();
    form.shape = vector_of(packed.get_all<std::uint64_t>());
    form.chunk = vector_of(packed.get_all<std::uint64_t>());
    form.filters = vector_of(packed.get_all<h5::Filter>());
    form.partial_chunks_filtered = packed.get<bool>();
    form.fill = vector_of(packed.get_all<std::byte>());
    return form;
}

} // namespace

void Column::pack(Packer& packer, FilePool const& files, Column const* before) const {
    packer.put(in_place_);
    packer.put(unwritten_);
    packer.put(linked_);
    if (linked_) {
        files.stamp(file_).pack(packer);
    }
    packer.put(checksums_.first);
    packer.put(checksums_.count);
    bool const as_before = before != nullptr && before->form_ == form_;
    packer.put(as_before);
    if (!as_before) {
        pack_form(packer, *form_);
    }
    packer.put(offset_);
    packer.put_all(chunks_);
    packer.put_all(view_);
}

Column::Column(Unpacker& packed, std::string const& name, Context context, Column const* before)
    : name_(name), number_(context.number++), in_place_(packed.get<bool>()),
      unwritten_(packed.get<bool>()), linked_(packed.get<bool>()) {
    file_ = linked_ ? context.files.number_of(FilePool::Stamp::unpacked(packed))
                    : context.files.last_added();
    checksums_.first = packed.get<std::uint64_t>();
    checksums_.count = packed.get<std::uint64_t>();
    if (packed.get<bool>()) { // as before
        form_ = before->form_;
        measure();
    } else {
        take(unpacked_form(packed), before);
    }
    offset_ = packed.get<std::uint64_t>();
    chunks_ = packed.get_all<h5::Chunk>();
    keep_packed(packed.get_all<std::byte>(), context);
}

/// Ranks that open a share of the files each have the room of all of them for their own.
void Column::keep_packed(std::span<std::byte const> bytes, Context const& context) {
    auto& room = in_place_ ? context.room_for_small : context.room;
    if (bytes.size() <= room) {
        room -= bytes.size();
        view_ = bytes;
    } else if (!in_place_) {
        refuse_to_keep(context.files.path(context.files.last_added()),
                       "it does not fit into the memory that is reserved for small datasets");
    }
}

} // namespace lockstep::data
