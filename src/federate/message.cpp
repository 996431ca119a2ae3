#include "federate/message.hpp"

#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cstring>

#include "signature_block.hpp"

namespace lockstep::federate {

namespace {

std::vector<std::byte> bytes_of(h5::File const& file, h5::DatasetInfo const& info) {
    std::vector<std::byte> bytes(h5::elements(info.shape) * h5::size_of(*info.type));
    if (!bytes.empty()) {
        file.read(info.path, *info.type, bytes);
    }
    return bytes;
}

} // namespace

std::string Binding::text() const {
    return concat("federation ", federation, "\nround ", round, "\nphase ", phase, "\nsender ",
                  sender, "\nmodel ", model, "\n");
}

void Message::add(std::string const& name, h5::Type type, std::span<std::byte const> bytes) {
    parts_[name] = {type, {bytes.begin(), bytes.end()}};
}

void Message::add_text(std::string const& name, std::string_view text) {
    add(name, h5::Type::u8, std::as_bytes(std::span(text.data(), text.size())));
}

void Message::add_octets(std::string const& name, std::span<std::uint8_t const> octets) {
    add(name, h5::Type::u8, std::as_bytes(octets));
}

void Message::add_words(std::string const& name, std::span<std::uint32_t const> words) {
    add(name, h5::Type::u32, std::as_bytes(words));
}

Message::Part const& Message::part(std::string const& name, h5::Type type) const {
    auto const found = parts_.find(name);
    if (found == parts_.end() || found->second.type != type) {
        throw Error(ExitCode::data,
                    {concat(path_.string(), " has no valid dataset named ", name),
                     "the file is another kind of message, or its sender runs another "
                     "version of this program",
                     "Ask the sender which version of Lockstep wrote the file"});
    }
    return found->second;
}

std::string Message::text(std::string const& name) const {
    auto const& bytes = part(name, h5::Type::u8).bytes;
    return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

Octets Message::octets(std::string const& name) const {
    auto const& bytes = part(name, h5::Type::u8).bytes;
    auto const* const first = reinterpret_cast<std::uint8_t const*>(bytes.data());
    return {first, first + bytes.size()};
}

std::vector<std::uint32_t> Message::words(std::string const& name) const {
    auto const& bytes = part(name, h5::Type::u32).bytes;
    std::vector<std::uint32_t> words(bytes.size() / sizeof(std::uint32_t));
    if (!words.empty()) {
        std::memcpy(words.data(), bytes.data(), bytes.size());
    }
    return words;
}

std::vector<std::string> Message::names() const {
    std::vector<std::string> names;
    for (auto const& [name, part] : parts_) {
        names.push_back(name);
    }
    return names;
}

Digest Message::digest() const {
    Digester digester;
    digester.add(binding_.text());
    for (auto const& [name, part] : parts_) {
        digester.add(concat(name, " ", h5::name_of(part.type), " ", part.bytes.size(), "\n"))
            .add(part.bytes);
    }
    return digester.digest();
}

void Message::write(std::filesystem::path const& path, SigningKey const& key) const {
    std::uint64_t bytes = 65536; // more than HDF5 takes beside small parts
    for (auto const& [name, part] : parts_) {
        bytes += part.bytes.size() + 8192;
    }
    SignedFile file(path, bytes);
    {
        auto h5 = h5::File::create(file.path(), {.user_block = signed_from});
        for (auto const& [name, part] : parts_) {
            h5.create_dataset(name, part.type, {part.bytes.size() / h5::size_of(part.type)});
            if (!part.bytes.empty()) {
                h5.write(name, part.type, part.bytes);
            }
        }
        h5.close();
    }
    file.commit(concat(binding_.text(), "parts ", hex_text(digest()), "\n"), key);
}

/// HDF5 reads the file by its name, after every byte was looked at: the digest of what it gave is
/// in what was signed, so that a file that was exchanged in between is found.
Message Message::read_verified(std::filesystem::path const& path, Binding binding,
                               SignatureBlock const& block) {
    Message message(std::move(binding));
    message.path_ = path;
    message.signer_ = block.key;
    auto const file = h5::File::open_self_contained(path);
    auto const max = std::filesystem::file_size(path); // of a dataset that lies in it
    for (auto const& info : file.datasets()) {
        if (!info.type || info.shape.size() != 1 || info.shape[0] > max ||
            (!info.contiguous && info.shape[0] > 0)) {
            throw refused(path, concat("its dataset ", info.path,
                                       " is not a plain list of numbers that lies in this file"));
        }
        message.parts_[info.path] = {*info.type, bytes_of(file, info)};
    }
    require_parts(block, path, message.digest());
    return message;
}

Message Message::read(std::filesystem::path const& path, Binding const& expected,
                      PublicKey const& key) {
    auto const block = read_signature_block(path);
    require_signature(block, path, key);
    require_binding(block, path, expected);
    return read_verified(path, expected, block);
}

Message Message::read_of_unknown(std::filesystem::path const& path, Binding const& expected) {
    auto const block = read_signature_block(path);
    require_signature(block, path, block.key);
    auto known = expected;
    known.federation = known.federation.empty() ? block.field("federation") : known.federation;
    known.model = known.model.empty() ? block.field("model") : known.model;
    require_binding(block, path, known);
    return read_verified(path, known, block);
}

} // namespace lockstep::federate
