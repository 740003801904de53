// SPDX-License-Identifier: Apache-2.0
// libcudnn of the emulator: plain float32 convolutions in NCHW, summed in double. Device memory is
// host memory and nothing is queued, so a call has computed when it returns.
#include <cstddef>
#include <cstdlib>

namespace {

struct Shape {
  int n = 0, c = 0, h = 0, w = 0;  // of a filter: k, c, r, s
  int pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1;
};

int setting(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

Shape* shape(void* descriptor) { return static_cast<Shape*>(descriptor); }

int make(void** out) {
  *out = new Shape;  // tests' processes end; nothing is freed
  return 0;
}

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return 90300; }
const char* cudnnGetErrorString(int code) {
  return code == 1001 ? "CUDNN_STATUS_NOT_INITIALIZED" : "CUDNN_STATUS_BAD_PARAM";
}
int cudnnCreate(void** handle) {
  if (int code = setting("TF_EMU_CUDNN_CREATE"); code != 0) return code;
  return make(handle);
}
int cudnnSetStream(void* handle, void*) { return handle == nullptr ? 2000 : 0; }
int cudnnCreateTensorDescriptor(void** out) { return make(out); }
int cudnnCreateFilterDescriptor(void** out) { return make(out); }
int cudnnCreateConvolutionDescriptor(void** out) { return make(out); }
int cudnnSetTensor4dDescriptor(void* out, int format, int type, int n, int c, int h, int w) {
  if (format != 0 || type != 0) return 2000;
  *shape(out) = Shape{n, c, h, w};
  return 0;
}
int cudnnSetFilter4dDescriptor(void* out, int type, int format, int k, int c, int h, int w) {
  if (format != 0 || type != 0) return 2000;
  *shape(out) = Shape{k, c, h, w};
  return 0;
}
int cudnnSetConvolution2dDescriptor(void* out, int pad_h, int pad_w, int u, int v, int dilation_h,
                                    int dilation_w, int mode, int type) {
  if (dilation_h != 1 || dilation_w != 1 || mode != 1 || type != 0) return 2000;
  Shape made;
  made.pad_h = pad_h, made.pad_w = pad_w, made.stride_h = u, made.stride_w = v;
  *shape(out) = made;
  return 0;
}
int cudnnConvolutionForward(void*, const void* alpha, void* x_shape, const void* x_data,
                            void* f_shape, const void* f_data, void* convolution, int, void*,
                            size_t, const void* beta, void* y_shape, void* y_data) {
  const Shape x = *shape(x_shape), f = *shape(f_shape), y = *shape(y_shape),
              how = *shape(convolution);
  if (x.c != f.c || y.c != f.n || x.n != y.n) return 2000;
  const float *in = static_cast<const float*>(x_data), *filter = static_cast<const float*>(f_data);
  float* out = static_cast<float*>(y_data);
  const float a = *static_cast<const float*>(alpha), b = *static_cast<const float*>(beta);
  for (int n = 0; n < y.n; ++n)
    for (int k = 0; k < y.c; ++k)
      for (int i = 0; i < y.h; ++i)
        for (int j = 0; j < y.w; ++j) {
          double sum = 0;
          for (int c = 0; c < x.c; ++c)
            for (int r = 0; r < f.h; ++r)
              for (int s = 0; s < f.w; ++s) {
                const int row = i * how.stride_h + r - how.pad_h;
                const int column = j * how.stride_w + s - how.pad_w;
                if (row < 0 || row >= x.h || column < 0 || column >= x.w) continue;
                sum += static_cast<double>(in[((n * x.c + c) * x.h + row) * x.w + column]) *
                       filter[((k * f.c + c) * f.h + r) * f.w + s];
              }
          float& value = out[((n * y.c + k) * y.h + i) * y.w + j];
          value = static_cast<float>(a * sum) + (b == 0 ? 0 : b * value);
        }
  if (setting("TF_EMU_CUDNN_WRONG") != 0) out[0] += 1;
  return 0;
}

}  // extern "C"
