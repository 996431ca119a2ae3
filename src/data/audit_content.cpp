#include "base/hash.hpp"

#include <algorithm>

#include "audit_parts.hpp"

namespace lockstep::data {

namespace {

void add_range(Hasher& hasher, File const& file, ByteRange const& range,
               std::vector<std::byte>& block) {
    for (std::uint64_t at = 0; at < range.count; at += block.size()) {
        block.resize(std::min(checksum_block, range.count - at));
        file.read_at(range.first + at, block);
        hasher.add(block);
    }
}

} // namespace

std::uint64_t Audit::content_of(Dataset const& set) {
    Hasher hasher;
    std::vector<std::byte> block;
    auto const& source = set.parts_->source;
    for (auto const* const fields : {&set.parts_->inputs, &set.parts_->targets}) {
        for (auto const& field : *fields) {
            for (std::size_t number = 0; number < source.named.size(); ++number) {
                for (auto const* const column : field.columns_of(number)) {
                    auto const file = source.files.get(column->file());
                    auto const form = column->form_text();
                    hasher.add(std::as_bytes(std::span(form)));
                    hasher.add(column->view()); // of values that are not in a file as they are
                    if (auto const sums = column->checksums(); sums.count > 0) {
                        add_range(hasher, *file, sums, block);
                        continue;
                    }
                    for (auto const& range : column->stored()) {
                        add_range(hasher, *file, range, block);
                    }
                }
            }
        }
    }
    return hasher.digest();
}

} // namespace lockstep::data
