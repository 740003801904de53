# SPDX-License-Identifier: Apache-2.0
class BackendLayer:
    """What every Keras layer inherits from the backend: nothing is needed."""
