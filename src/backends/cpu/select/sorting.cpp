// SPDX-License-Identifier: Apache-2.0
// sort and argsort. Elements become whole-number keys in the order wanted, each with its place, so
// that no two are equal and any way of sorting keeps equal elements in their order.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/move/element.h"
#include "backends/cpu/move/numbers.h"

namespace tracefire::cpu {
namespace {

constexpr int64_t kGrain = 4 * 1024;

/// Keys that are ordered like the numbers: -0 equals 0, every NaN is above everything. T is no
/// wider than the key.
template <class Key, class T>
Key key_of(T value) {
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<Key>(static_cast<Key>(value) ^ (std::is_signed_v<T> ? kSign : Key{0}));
  } else {
    using Real = std::conditional_t<sizeof(Key) == 4, float, double>;
    const Real x = static_cast<Real>(number(value)) + Real(0);  // -0 + 0 is 0
    if (x != x) return ~Key{0};
    const Key bits = std::bit_cast<Key>(x);
    return bits & kSign ? ~bits : bits | kSign;
  }
}

/// An element of a line: compared by key, then by place.
template <class Key>
struct Entry {
  Key key;
  int64_t place;
  bool operator<(const Entry& other) const {
    return key != other.key ? key < other.key : place < other.place;
  }
};

/// One line's places in sorted order. Its memory is used again for the next line.
class LineSorter {
 public:
  LineSorter(int64_t size, bool descending) : size_(size), descending_(descending) {}

  /// Calls put(k, place) for each rank k; element i of the line is x[i * step].
  template <class T, class Put>
  void run(const T* x, int64_t step, Put put) {
    if (sizeof(Computed<T>) <= 4 && size_ <= int64_t{1} << 32) {
      sort_packed(x, step);
      for (int64_t k = 0; k < size_; ++k) {
        put(k, static_cast<int64_t>(packed_[static_cast<size_t>(k)] & 0xffffffff));
      }
    } else {
      sort_entries(x, step);
      for (int64_t k = 0; k < size_; ++k) put(k, entries_[static_cast<size_t>(k)].place);
    }
  }

 private:
  /// Key and place in one word.
  template <class T>
  void sort_packed(const T* x, int64_t step) {
    packed_.resize(static_cast<size_t>(size_));
    for (int64_t i = 0; i < size_; ++i) {
      const uint32_t key = key_of<uint32_t>(x[i * step]);
      packed_[static_cast<size_t>(i)] =
          uint64_t{descending_ ? ~key : key} << 32 | static_cast<uint64_t>(i);
    }
    // Counting costs as much as there are digits; long lines are better off with fewer rounds.
    if (size_ < 128) {
      std::sort(packed_.begin(), packed_.end());
    } else if (size_ < 16 * 1024) {
      sort_by_counting<8>();
    } else {
      sort_by_counting<11>();
    }
  }

  /// By `bits` of the key at a time, the lowest first; each round keeps the order of the last.
  template <int bits>
  void sort_by_counting() {
    constexpr size_t kValues = size_t{1} << bits;
    other_.resize(packed_.size());
    std::array<size_t, kValues> next;
    for (int shift = 32; shift < 64; shift += bits) {
      const auto digit = [shift](uint64_t word) { return word >> shift & (kValues - 1); };
      next.fill(0);
      for (const uint64_t word : packed_) ++next[digit(word)];
      if (next[digit(packed_[0])] == packed_.size()) continue;  // all alike
      size_t total = 0;
      for (size_t& start : next) total += std::exchange(start, total);
      for (const uint64_t word : packed_) other_[next[digit(word)]++] = word;
      packed_.swap(other_);
    }
  }

  template <class T>
  void sort_entries(const T* x, int64_t step) {
    entries_.resize(static_cast<size_t>(size_));
    for (int64_t i = 0; i < size_; ++i) {
      const uint64_t key = key_of<uint64_t>(x[i * step]);
      entries_[static_cast<size_t>(i)] = {descending_ ? ~key : key, i};
    }
    std::sort(entries_.begin(), entries_.end());
  }

  int64_t size_;
  bool descending_;
  std::vector<uint64_t> packed_, other_;
  std::vector<Entry<uint64_t>> entries_;
};

/// Sorts every line along the axis; `write(T element, line start, distance, rank, place)`.
template <class Write>
void sort_lines(DType dtype, const AxisView& view, bool descending, const void* input,
                Write write) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, view.size));
  const auto run = [&](auto element) {
    using T = decltype(element);
    const T* x = static_cast<const T*>(input);
    parallel_for(view.outer * view.inner, grain, [&](int64_t begin, int64_t end) {
      LineSorter sorter(view.size, descending);
      for (int64_t line = begin; line < end; ++line) {
        const int64_t start = line / view.inner * view.size * view.inner + line % view.inner;
        sorter.run(x + start, view.inner, [&](int64_t rank, int64_t place) {
          write(x, start + rank * view.inner, start + place * view.inner, place);
        });
      }
    });
  };
  if (dtype == DType::kBool) {
    run(uint8_t());
  } else {
    with_real(dtype, run);
  }
}

BoundLaunch bind_sort(const NodeView& node) {
  const AxisView view = view_at(sizes_of(node.inputs[0]), axis_of(node));
  const bool descending = node.node->attrs.flag("descending");
  const DType dtype = node.inputs[0].dtype;
  return make_launch("cpu_sort", [=](const LaunchArgs& args) -> Status {
    void* output = args.outputs[0];
    sort_lines(dtype, view, descending, args.inputs[0],
               [output](const auto* x, int64_t to, int64_t from, int64_t) {
                 using T = std::remove_const_t<std::remove_pointer_t<decltype(x)>>;
                 static_cast<T*>(output)[to] = x[from];
               });
    return {};
  });
}

BoundLaunch bind_argsort(const NodeView& node) {
  const AxisView view = view_at(sizes_of(node.inputs[0]), axis_of(node));
  const bool descending = node.node->attrs.flag("descending");
  const DType dtype = node.inputs[0].dtype;
  const size_t size = dtype_size(node.outputs[0].dtype);
  static_assert(std::endian::native == std::endian::little, "the low bytes of a number are first");
  return make_launch("cpu_argsort", [=](const LaunchArgs& args) -> Status {
    char* output = static_cast<char*>(args.outputs[0]);
    sort_lines(dtype, view, descending, args.inputs[0],
               [=](const auto*, int64_t to, int64_t, int64_t place) {
                 std::memcpy(output + static_cast<size_t>(to) * size, &place, size);
               });
    return {};
  });
}

}  // namespace

std::vector<KernelSpec> sorting_kernels() {
  return {{"sort", "cpu_sort", accept_any, bind_sort},
          {"argsort", "cpu_argsort", accept_any, bind_argsort}};
}

}  // namespace tracefire::cpu
