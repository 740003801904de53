// SPDX-License-Identifier: Apache-2.0
#include "backends/ref/oracle.h"

namespace tracefire::ref {
namespace {

/// Strides over (batch axes…, row, column), with 0 where a batch axis repeats.
std::vector<int64_t> matrix_strides(const Array& x, bool transposed,
                                    const std::vector<int64_t>& batch) {
  const std::vector<int64_t> own = strides_of(x.sizes);
  const std::vector<int64_t> lead(x.sizes.begin(), x.sizes.end() - 2);
  std::vector<int64_t> strides(batch.size());
  for (size_t i = 0; i < lead.size(); ++i) {
    if (lead[i] != 1) strides[batch.size() - lead.size() + i] = own[i];
  }
  const int64_t row = own[own.size() - 2], column = own[own.size() - 1];
  strides.push_back(transposed ? column : row);
  strides.push_back(transposed ? row : column);
  return strides;
}

void matmul(Eval& e) {
  const Array &a = e.in[0], &b = e.in[1];
  Array& c = e.out[0];
  const bool ta = e.attrs().flag("transpose_a"), tb = e.attrs().flag("transpose_b");
  const std::vector<int64_t> batch(c.sizes.begin(), c.sizes.end() - 2);
  const std::vector<int64_t> sa = matrix_strides(a, ta, batch), sb = matrix_strides(b, tb, batch);
  const int64_t inner = a.sizes[a.sizes.size() - (ta ? 2 : 1)];
  const size_t row = batch.size(), column = row + 1;
  for_each(c.sizes, [&](int64_t i, const std::vector<int64_t>& index) {
    int64_t pa = index[row] * sa[row], pb = index[column] * sb[column];
    for (size_t k = 0; k < batch.size(); ++k) {
      pa += index[k] * sa[k];
      pb += index[k] * sb[k];
    }
    long double real = 0;
    Int whole = 0;
    for (int64_t k = 0; k < inner; ++k, pa += sa[column], pb += sb[row]) {
      const size_t x = static_cast<size_t>(pa), y = static_cast<size_t>(pb);
      if (c.is_real()) {
        real += static_cast<long double>(a.real[x]) * b.real[y];
      } else {
        whole = wrap_to(c.dtype, whole + wrap_to(c.dtype, a.whole[x] * b.whole[y]));
      }
    }
    if (c.is_real()) {
      c.real[static_cast<size_t>(i)] = static_cast<double>(real);
    } else {
      c.whole[static_cast<size_t>(i)] = whole;
    }
  });
}

}  // namespace

std::vector<Entry> product_entries() { return {{"matmul", matmul}, {"int_matmul", matmul}}; }

}  // namespace tracefire::ref
