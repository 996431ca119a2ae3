// Reads data sets as training does and writes what comes out: for each line of the input, files,
// inputs and targets with tabs between, a line with the number of bytes and then all fields, reals
// as float32 and whole numbers as int64; or a line with - and the reason.

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/data/dataset.hpp"

#include <algorithm>
#include <iostream>
#include <numeric>

using namespace lockstep;

namespace {

std::string bytes_of(data::Dataset const& set) {
    data::Batch batch;
    data::Scratch scratch;
    batch.indices.resize(static_cast<std::size_t>(set.samples()));
    std::iota(batch.indices.begin(), batch.indices.end(), 0);
    set.read(batch, scratch);
    std::string all;
    auto const add = [&](auto const& values) {
        auto const bytes = std::as_bytes(std::span(values));
        all.append(reinterpret_cast<char const*>(bytes.data()), bytes.size());
    };
    for (auto const& field : batch.fields) {
        add(field.reals);
        add(field.wholes);
    }
    return all;
}

} // namespace

int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        auto const words = split(line, '\t');
        try {
            auto const bytes = bytes_of(data::Dataset(
                {.files = words.at(0), .inputs = words.at(1), .targets = words.at(2)}));
            std::cout << bytes.size() << "\n" << bytes;
        } catch (Error const& error) {
            std::string text = error.what();
            std::replace(text.begin(), text.end(), '\n', ' ');
            std::cout << "- " << static_cast<int>(error.code()) << " " << text << "\n";
        }
    }
}
