// SPDX-License-Identifier: Apache-2.0
#include "backends/ref/oracle.h"

namespace tracefire::ref {
namespace {

using Index = std::vector<int64_t>;

/// Every result element is a copy of one element of input 0, whose number `place` gives.
template <class Fn>
void take(Eval& e, Fn place) {
  for_each(e.out[0].sizes, [&](int64_t i, const Index& index) {
    copy_element(e.in[0], place(i, index), &e.out[0], i);
  });
}

void constant(Eval& e) {
  Array& y = e.out[0];
  const std::string& bytes = e.attrs().text("bytes");
  if (y.dtype == DType::kString) {
    for (std::string& text : y.text) text = bytes;
    return;
  }
  const size_t one = dtype_size(y.dtype);
  const int64_t given = one ? static_cast<int64_t>(bytes.size() / one) : 0;
  const Array values = from_bytes(bytes, y.dtype, {given});
  for (int64_t i = 0; i < y.count(); ++i) copy_element(values, given == 1 ? 0 : i, &y, i);
}

void iota(Eval& e) {
  const size_t axis = static_cast<size_t>(e.attrs().integer("axis"));
  Array& y = e.out[0];
  for_each(y.sizes, [&](int64_t i, const Index& index) {
    if (y.is_real()) {
      y.real[static_cast<size_t>(i)] = static_cast<double>(index[axis]);
    } else {
      y.whole[static_cast<size_t>(i)] = index[axis];
    }
  });
}

void extent(Eval& e) {
  const int64_t count = count_of(e.attrs().shape("shape").sizes());
  if (e.out[0].is_real()) {
    e.out[0].real[0] = static_cast<double>(count);
  } else {
    e.out[0].whole[0] = count;
  }
}

void same_elements(Eval& e) {
  take(e, [](int64_t i, const Index&) { return i; });
}

void transpose(Eval& e) {
  const Index from = strides_of(e.in[0].sizes);
  Index strides;
  for (int64_t axis : e.attrs().ints("perm")) strides.push_back(from[static_cast<size_t>(axis)]);
  take(e, [&](int64_t, const Index& index) { return dot(index, strides); });
}

void broadcast_to(Eval& e) {
  const Index strides = broadcast_strides(e.in[0].sizes, e.out[0].sizes);
  take(e, [&](int64_t, const Index& index) { return dot(index, strides); });
}

void slice(Eval& e) {
  const Index starts = e.attrs().shape("starts").sizes(), steps = e.attrs().ints("strides");
  const Index strides = strides_of(e.in[0].sizes);
  take(e, [&](int64_t, const Index& index) {
    int64_t place = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) {
      place += (starts[axis] + index[axis] * steps[axis]) * strides[axis];
    }
    return place;
  });
}

void pad(Eval& e) {
  const Index low = e.attrs().shape("low").sizes(), interior = e.attrs().ints("interior");
  const Index strides = strides_of(e.in[0].sizes);
  for_each(e.out[0].sizes, [&](int64_t i, const Index& index) {
    int64_t place = 0;
    bool inside = true;
    for (size_t axis = 0; inside && axis < index.size(); ++axis) {
      const int64_t step = interior[axis] + 1, at = index[axis] - low[axis];
      inside = at >= 0 && at % step == 0 && at / step < e.in[0].sizes[axis];
      place += at / step * strides[axis];
    }
    copy_element(e.in[inside ? 0 : 1], inside ? place : 0, &e.out[0], i);
  });
}

void concat(Eval& e) {
  const size_t axis = static_cast<size_t>(e.attrs().integer("axis"));
  const Index strides = strides_of(e.out[0].sizes);
  int64_t offset = 0;
  for (const Array& part : e.in) {
    for_each(part.sizes, [&](int64_t i, const Index& index) {
      copy_element(part, i, &e.out[0], dot(index, strides) + offset * strides[axis]);
    });
    offset += part.sizes[axis];
  }
}

void reverse(Eval& e) {
  const Index strides = strides_of(e.in[0].sizes);
  take(e, [&](int64_t, const Index& index) {
    int64_t place = dot(index, strides);
    for (int64_t axis : e.attrs().ints("axes")) {
      const size_t k = static_cast<size_t>(axis);
      place += (e.in[0].sizes[k] - 1 - 2 * index[k]) * strides[k];
    }
    return place;
  });
}

}  // namespace

std::vector<Entry> movement_entries() {
  return {{"constant", constant},   {"iota", iota},
          {"extent", extent},       {"reshape", same_elements},
          {"transpose", transpose}, {"broadcast_to", broadcast_to},
          {"slice", slice},         {"pad", pad},
          {"concat", concat},       {"reverse", reverse},
          {"copy", same_elements}};
}

}  // namespace tracefire::ref
