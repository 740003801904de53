# SPDX-License-Identifier: Apache-2.0
from keras_tracefire.src import missing


class SavedModelExportArchive:
    """`model.export(format="tf_saved_model")`, which this backend does not write."""

    def _refuse(self, *args, **kwargs):
        raise missing.unsupported(
            "export to a TensorFlow SavedModel was asked of the tracefire backend",
            "a format that it writes",
            "Save the model with model.save('model.keras'), load it under another backend and "
            "export it there",
        )

    track = add_endpoint = track_and_add_endpoint = write_out = _refuse
